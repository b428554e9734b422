"""Watching a running engine: its metrics page asked again and again, and what its counters say exactly."""
