"""Experiments of many runs: replications, sweeps, studies, capacity search, and checks against a baseline."""
