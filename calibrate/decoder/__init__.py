"""The real engine: a decoder over a paged KV cache, its attention backends, and how steps are launched."""
