"""A prediction compared with a measurement."""
