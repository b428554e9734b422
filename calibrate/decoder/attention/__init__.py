"""Attention over a paged cache, by three backends behind one function: `queries, keys, values, batch -> answers`."""
