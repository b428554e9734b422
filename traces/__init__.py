"""Requests from outside: public trace formats, requests written by hand, synthetic workloads, transforms.

Knows nothing of schedulers, policies or reports. What is wrong with an input is a `BadInput` with one line that says
what, where and what would be right.
"""

from traces.errors import BadInput
from traces.reading.registry import chunks, detect, load, read

__all__ = ["BadInput", "chunks", "detect", "load", "read"]
