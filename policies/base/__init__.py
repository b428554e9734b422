"""Shared parts of the policies: registry entries, option checks, wrappers, orders by prediction, service counters."""
