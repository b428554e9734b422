"""The logs of a run: flat integer arrays, written in order, never read by the scheduler."""
