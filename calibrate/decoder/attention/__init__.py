"""Attention over a paged cache, by three backends with one signature: `queries, keys, values, batch -> output`."""
