"""The largest values taken from outside: beyond them an input is an error, or has to be said to be meant."""

from sim.request import Nanoseconds

MAX_TOKENS = 2**31
LATEST: Nanoseconds = 2**62
MOST_REQUESTS = 2_000_000
"""Requests of one workload, unless large ones are allowed."""
MOST_BLOCKS = 15_000_000
"""Blocks of all prompts whose content is known, unless large workloads are allowed: about 1 GB."""
