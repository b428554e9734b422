"""Sweeps: scenarios that differ in a few keys, run on local processes or a cluster, one row of a table each."""
