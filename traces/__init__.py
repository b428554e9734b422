"""Requests as inputs: public trace formats, requests listed in a scenario, synthetic workloads, transforms.

An input that cannot be used raises `BadInput` with one line: what was found, where, and what was expected.
"""

from traces.errors import BadInput
from traces.reading.registry import chunks, detect, load, read

__all__ = ["BadInput", "chunks", "detect", "load", "read"]
