"""The largest input values. Larger ones are errors; the last two limits can be lifted by the user."""

from sim.request import Nanoseconds

MAX_TOKENS = 2**31
LATEST: Nanoseconds = 2**62
MOST_REQUESTS = 200_000
"""Requests of one workload, unless large ones are allowed."""
MOST_BLOCKS = 2_000_000
"""Blocks of all prompts whose content is known, unless large workloads are allowed: about 1 GB."""
