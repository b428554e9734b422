"""The largest values taken from outside: beyond them an input is an error, not a workload."""

from sim.request import Nanoseconds

MAX_TOKENS = 2**31
LATEST: Nanoseconds = 2**62
