"""From published tables of operators to a table of whole steps."""
