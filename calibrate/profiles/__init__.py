"""Profiles: a cost curve and its provenance; those that ship with slotstep, and those made from shapes."""
