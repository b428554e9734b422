"""Runs in the JSON of the Trace Event Format, which ui.perfetto.dev and chrome://tracing open.

A process per run; in it a track per slot with a span per stay of a request, and counters for the queue, the pages
held and occupancy. Times are microseconds since the run's first request, exact to the nanosecond.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reports.page.report import Run

Event = dict[str, Any]
Whole = NDArray[np.int64]


def trace(runs: Sequence[Run]) -> dict[str, Any]:
    """The trace of several runs as an object for `json.dumps`: `traceEvents`, and the digest of each run's log."""
    events = [event for place, run in enumerate(runs, start=1) for event in _of_run(run, place)]
    about = {run.name: run.summary["log_sha256"] for run in runs}
    return {"displayTimeUnit": "ns", "otherData": {"log_sha256": about}, "traceEvents": events}


def _of_run(run: Run, process: int) -> Iterator[Event]:
    yield _metadata("process_name", process, 0, name=run.name)
    yield _metadata("process_sort_index", process, 0, sort_index=process)
    for slot in range(run.slots):
        yield _metadata("thread_name", process, slot + 1, name=f"slot {slot}")
        yield _metadata("thread_sort_index", process, slot + 1, sort_index=slot)
    for stay in run.stays.itertuples(index=False):
        yield from _of_stay(stay, run, process)
    yield from _counter("queue", process, *_queue(run), run.begin)
    for replica, slots in enumerate(run.engine_slots):
        several = run.replicas > 1
        of = f", replica {replica}" if several else ""
        steps = run.steps[run.steps["replica"] == replica] if several else run.steps
        working = (steps["decode"] + steps["prefill"]).to_numpy(np.int64)
        yield from _counter(
            f"pages{of}", process, *_changes(steps, steps["pages_used"].to_numpy(np.int64)), run.begin
        )
        times, values = _changes(steps, working)
        yield from _counter(f"occupancy{of}", process, times, values / slots, run.begin)


def _metadata(what: str, process: int, thread: int, **arguments: object) -> Event:
    return {"ph": "M", "name": what, "pid": process, "tid": thread, "args": arguments}


def _of_stay(stay: Any, run: Run, process: int) -> Iterator[Event]:
    """The span of a stay, and within it the spans of prefill, decode, and the time in the batch after completion."""
    begin = int(stay.admitted_ns)
    end = run.end if pd.isna(stay.released_ns) else int(stay.released_ns)
    done = end if pd.isna(stay.completed_ns) else int(stay.completed_ns)
    first = done if pd.isna(stay.first_token_ns) else min(int(stay.first_token_ns), done)
    place = {"pid": process, "tid": int(stay.slot) + 1}
    arguments = {"tenant": stay.tenant, "status": stay.status}
    yield {"ph": "X", "name": stay.id, "cat": "request", **_when(begin, end, run.begin), **place, "args": arguments}
    for name, start, stop in (("prefill", begin, first), ("decode", first, done), ("held", done, end)):
        if stop > start:
            yield {"ph": "X", "name": name, "cat": "phase", **_when(start, stop, run.begin), **place, "args": {}}


def _when(start: int, stop: int, origin: int) -> Event:
    return {"ts": (start - origin) / 1000, "dur": (stop - start) / 1000}


def _queue(run: Run) -> tuple[Whole, Whole]:
    """When the number of requests waiting for their first admission changes, and the number from then on."""
    requests = run.requests[run.requests["queued_ns"].notna()]
    came = requests["queued_ns"].to_numpy(np.int64)
    went = requests["admitted_ns"].fillna(requests["ended_ns"]).dropna().to_numpy(np.int64)
    times = np.unique(np.concatenate([came, went]))
    waiting = np.searchsorted(np.sort(came), times, "right") - np.searchsorted(np.sort(went), times, "right")
    return times, waiting.astype(np.int64)


def _changes(steps: pd.DataFrame, value: Whole) -> tuple[Whole, Whole]:
    """A per-step value as changes in time: the value from each step's start, 0 from its end if a gap follows."""
    start = steps["start_ns"].to_numpy(np.int64)
    end = start + steps["duration_ns"].to_numpy(np.int64)
    gap = np.append(end[:-1] < start[1:], True) if len(start) else np.zeros(0, bool)
    times = np.concatenate([start, end[gap]])
    order = np.argsort(times, kind="stable")
    return times[order], np.concatenate([value, np.zeros(int(gap.sum()), np.int64)])[order]


def _counter(name: str, process: int, times: Whole, values: NDArray[Any], origin: int) -> Iterator[Event]:
    """Counter events at the instants at which the value changes."""
    new = np.insert(np.diff(values) != 0, 0, True) if len(values) else np.zeros(0, bool)
    for time, value in zip(times[new].tolist(), values[new].tolist(), strict=True):
        yield {"ph": "C", "name": name, "pid": process, "ts": (time - origin) / 1000, "args": {name: value}}
