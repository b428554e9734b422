"""Host time of serving engines: what a step takes beyond the device, by engine, version and scheduling.

An asynchronous engine plans the next step while the device computes, so that little is left between steps; a
synchronous one plans, samples and answers in between, for each sequence. Likely values are what the kernels leave in
the open rows (even crc32 of the id) of aiconfigurator-core's measured corpus: TensorRT-LLM 1.0.0rc3 on H100s, 8 to 64
clients (0.3 to 0.5 ms), and vLLM 0.12.0 on H100s, 8 to 64 clients (0.2 to 2.9 ms, by clients). Asynchronous vLLM and
SGLang have no such rows and are taken to be like TensorRT-LLM. The intervals are wide because hosts differ by
processor, front end and settings: fit it on a run where there is one (`slotstep calibrate from-log --free host`).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

MS = 1e6
LAUNCHES, LAUNCHED_ALL_REDUCE = 0.15 * MS, 0.045 * MS
"""Launching a layer's kernels one by one (some twelve of 5 us and an attention call in Python: 0.1 to 0.2 ms; our own
decoder takes 3 to 5 ms for 32 layers), and each of its all-reduces (tables of vLLM 0.14 without a graph: 44 us)."""


@dataclass(frozen=True)
class HostTime:
    """Nanoseconds that the host of an engine adds.

    low, likely, high   to each step
    per_sequence        for each sequence of a step
    """

    engine: str
    low: float
    likely: float
    high: float
    per_sequence: float = 0.0

    def launches_ns(self, layers: int, devices: int) -> float:
        """The least duration of a step with a chunk: its launches, which no captured graph replays at once."""
        return layers * (LAUNCHES + (2 * LAUNCHED_ALL_REDUCE if devices > 1 else 0.0))

    def described(self) -> dict[str, Any]:
        """For the details of a profile."""
        return {"engine": self.engine, "low": self.low, "likely": self.likely, "high": self.high}

    def at(self, ns: float) -> HostTime:
        """The same engine with a host time that is given."""
        return replace(self, low=ns, likely=ns, high=ns)


ASYNCHRONOUS, SYNCHRONOUS = "asynchronous", "synchronous"
SCHEDULING: Mapping[str, Mapping[str, tuple[float, float, float, float]]] = {
    "vllm": {ASYNCHRONOUS: (0.0, 0.4, 1.0, 0.0), SYNCHRONOUS: (0.1, 0.4, 2.2, 0.03)},
    "sglang": {ASYNCHRONOUS: (0.0, 0.4, 1.0, 0.0), SYNCHRONOUS: (0.1, 0.4, 2.2, 0.03)},
    "trtllm": {ASYNCHRONOUS: (0.0, 0.4, 1.0, 0.0), SYNCHRONOUS: (0.1, 0.4, 2.0, 0.015)},
}
"""Low, likely and high of a step, and of each sequence, ms."""
FIRST_ASYNCHRONOUS: Mapping[str, tuple[int, ...]] = {"vllm": (0, 14), "sglang": (0, 4), "trtllm": (1, 0)}
"""The first version whose default is asynchronous (vLLM's async scheduling, SGLang's and TensorRT-LLM's overlap)."""
OLDEST = (0, 8)
"""Versions of vLLM before this plan in Python beside the front end: their interval ends at twice the synchronous."""


def host_time(engine: str, version: str | None = None, scheduling: str | None = None) -> HostTime:
    """The host time of an engine; of a current version, and of the version's default scheduling, if not given.

    Raises ValueError, one line, for an unknown engine, version or scheduling.
    """
    if engine not in SCHEDULING:
        nearest = difflib.get_close_matches(engine.lower(), SCHEDULING, n=1, cutoff=0.0)[0]
        raise ValueError(f"engine {engine}: unknown; did you mean {nearest}? (known are {', '.join(SCHEDULING)})")
    number = numbers(version)
    default = SYNCHRONOUS if number is not None and number < FIRST_ASYNCHRONOUS[engine] else ASYNCHRONOUS
    chosen = scheduling or default
    if chosen not in SCHEDULING[engine]:
        raise ValueError(f"scheduling is {chosen}; expected {ASYNCHRONOUS} or {SYNCHRONOUS}")
    low, likely, high, each = (MS * value for value in SCHEDULING[engine][chosen])
    if engine == "vllm" and number is not None and number < OLDEST:
        likely, high = 2 * likely, 2 * high
    name = f"{engine} {version}" if version else engine
    return HostTime(f"{name}, {chosen}", low, likely, high, each)


def numbers(version: str | None) -> tuple[int, ...] | None:
    """The leading numbers of a version; raises ValueError for one without."""
    if version is None:
        return None
    found = re.match(r"v?(\d+(?:\.\d+)*)", version)
    if found is None:
        raise ValueError(f"version is {version!r}; expected numbers such as 0.14.0")
    return tuple(int(part) for part in found[1].split("."))


CURRENT = host_time("vllm")
