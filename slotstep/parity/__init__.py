"""The decisions of an engine's log compared with those of our scheduler."""
