"""The decoder: one forward pass over a ragged batch."""
