"""Serving a trace on a real engine under the scheduler, on the wall clock."""
