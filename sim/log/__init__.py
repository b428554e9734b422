"""The logs of a run: flat integer arrays, written in order, never read for a decision."""
