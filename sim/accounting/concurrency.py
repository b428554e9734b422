"""Numbers of requests at once: in flight (sent, not ended); running (admitted, neither ended nor preempted).

At one instant, ends come before starts: a place that is taken over does not count twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sim.accounting.client_view import Injected
from sim.accounting.requests import NEVER, RequestRecords
from sim.log.events import Integers, Kind

Level = tuple[Integers, Integers]
"""(increasing instants in ns, the number from each on)."""


def concurrency(injected: Injected, begin: int, end: int) -> dict[str, Any]:
    """Peak, and mean over time, of the requests in flight and running from `begin` to before `end` (ns)."""
    sent = (injected.queued != NEVER) & (injected.ended != NEVER)
    levels = {
        "in_flight": level(injected.queued[sent], injected.ended[sent]),
        "running": level(*map(np.concatenate, zip(*(stays(records) for records in injected.fleet), strict=True))),
    }
    return {
        f"{name}_{statistic}": value
        for name, (times, numbers) in levels.items()
        for statistic, value in zip(("peak", "mean"), between(times, numbers, begin, end), strict=True)
    }


def stays(records: RequestRecords) -> tuple[Integers, Integers]:
    """When requests began to run on a replica, and when they ceased to."""
    admitted, preempted = records.kind == Kind.ADMITTED, records.kind == Kind.PREEMPTED
    ran = (records.count(Kind.ADMITTED) > records.preemptions) & (records.ended != NEVER)
    return records.time[admitted], np.concatenate((records.time[preempted], records.ended[ran]))


def level(starts: Integers, ends: Integers) -> Level:
    """The number at every instant, from when each starts and ends."""
    starting = np.repeat(np.array([1, 0], np.uint64), [len(starts), len(ends)])
    marked = np.sort(np.concatenate((starts, ends)).astype(np.uint64) << np.uint64(1) | starting)
    times, change = (marked >> np.uint64(1)).astype(np.int64), 2 * (marked & np.uint64(1)).astype(np.int64) - 1
    last = np.append(times[1:] != times[:-1], True) if len(times) else np.zeros(0, bool)
    return times[last], np.cumsum(change)[last]


def between(times: Integers, numbers: Integers, begin: int, end: int) -> tuple[int, float | None]:
    """(peak from `begin` to before `end`, mean over that time); the mean is None if that has no length."""
    inside = slice(np.searchsorted(times, begin, side="right"), np.searchsorted(times, end, side="left"))
    before = numbers[inside.start - 1] if inside.start else 0
    instants = np.concatenate(([begin], times[inside], [end]))
    values = np.concatenate(([before], numbers[inside]))
    return int(values.max()), float(values @ np.diff(instants)) / (end - begin) if end > begin else None
