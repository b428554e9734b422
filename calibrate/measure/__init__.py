"""Timing the steps of an engine: which points, in which order, how often, and the log of it."""
