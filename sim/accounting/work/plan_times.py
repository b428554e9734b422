"""When each step was planned; a pure function of the log."""

from __future__ import annotations

import numpy as np

from sim.accounting.requests import RequestRecords
from sim.log.events import Integers


def planned_by_step(records: RequestRecords) -> Integers:
    """When each step was planned, ns, int64 of shape (steps,).

    When it starts, or at depth 2 when the one before it does, but never before its batch.
    """
    log = records.log
    runs = log.run_table()
    starts = records.step_ends - log.step_durations()
    if log.depth > 1:
        starts = np.concatenate(([0], starts[:-1]))
    planned: Integers = np.maximum(starts, np.repeat(runs["planned"], runs["steps"]))
    return planned
