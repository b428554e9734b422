"""When each step was planned, and how many requests had been queued by then; pure functions of the log."""

from __future__ import annotations

import numpy as np

from sim.accounting.requests import RequestRecords
from sim.log.events import Integers, Kind


def planned_by_step(records: RequestRecords) -> Integers:
    """When each step was planned, ns, int64 of shape (steps,).

    When it starts, or at depth 2 when the one before it does, but never before its batch.
    """
    log = records.log
    runs = log.run_table()
    starts = records.step_ends - log.step_durations()
    if log.depth > 1:
        starts = np.concatenate(([0], starts[:-1]))
    planned: Integers = np.maximum(starts, runs["planned"][records.run_of_step])
    return planned


def queued_by(records: RequestRecords, instants: Integers) -> Integers:
    """How many requests had been queued, less those dequeued, by each of the instants, which do not fall."""
    instants = np.ascontiguousarray(instants)
    queued, dequeued = (
        np.bincount(np.searchsorted(instants, records.time[records.places(kind)]), minlength=len(instants) + 1)
        for kind in (Kind.QUEUED, Kind.DEQUEUED)
    )
    found: Integers = np.cumsum(queued - dequeued)[:-1]
    return found
