"""A prediction held against a measurement."""
