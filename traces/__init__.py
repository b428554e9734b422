"""Requests from outside: public trace formats, requests written by hand, synthetic workloads, transforms.

Knows nothing of schedulers, policies or reports. Everything here returns a list of `sim.request.Request`
sorted by arrival, or raises `BadInput` with one line that says what, where and what would be right.
"""

from traces.errors import BadInput
from traces.registry import read

__all__ = ["BadInput", "read"]
