"""Rows of an event log: runs merged as long as the batch stayed the same, and rows cut to the steps that ended."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

NOT_OF_THE_BATCH = ("planned", "start", "steps", "waiting", "filled", "pages", "cached")
"""Columns in which runs with the same batch may differ."""

GROWS_BY = {"context": "decode", "live": "tokens"}
"""Columns that grow with every step, each by another column."""


def merged(table: Integers, runs: Mapping[str, Integers], durations: Integers) -> Integers:
    """The maximal runs, in the columns of the table.

    table      int64 of shape (runs, columns), and `runs` the same by column, in order
    durations  of each step, ns
    """
    if not len(table):
        return table
    ends = np.cumsum(durations)
    last = np.cumsum(runs["steps"]) - 1
    lasted = np.diff(ends[last], prepend=0)
    goes_on = np.flatnonzero(runs["start"][1:] == (runs["start"] + lasted)[:-1])
    for name, column in runs.items():
        if name in NOT_OF_THE_BATCH:
            continue
        expected = column[goes_on]
        if name in GROWS_BY:
            expected = expected + runs[GROWS_BY[name]][goes_on] * runs["steps"][goes_on]
        goes_on = goes_on[column[goes_on + 1] == expected]
    if not len(goes_on):
        return table
    begins = np.ones(len(table), bool)
    begins[goes_on + 1] = False
    first = np.flatnonzero(begins)
    found = table[first]
    found[:, list(runs).index("steps")] = np.add.reduceat(runs["steps"], first)
    return found


def cut(table: Integers, steps: int) -> bytearray:
    """The rows (request, first, end) of a table that begin within so many steps, ending with them at most."""
    begun = table[table[:, 1] < steps]
    begun[:, 2] = np.minimum(begun[:, 2], steps)
    return bytearray(begun.tobytes())
