"""The maxima of an array over ranges."""

from __future__ import annotations

import numpy as np

from sim.log.events import Integers


def range_maxima(values: Integers, first: Integers, end: Integers) -> Integers:
    """The maximum of `values` over each non-empty half-open range, by doubling (a sparse table)."""
    level = np.frexp(end - first)[1] - 1
    result = np.zeros(len(first), np.int64)
    table, width = values, 1
    for depth in range(int(level.max(initial=-1)) + 1):
        here = level == depth
        result[here] = np.maximum(table[first[here]], table[end[here] - width])
        table, width = np.maximum(table[:-width], table[width:]), 2 * width
    return result
