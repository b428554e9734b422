"""How much of the beginning of a run to leave out: MSER-5 (White, Cobb and Spratt 2000).

A run begins empty, which a busy engine never is again. Of all places to cut, take the one after which the mean is
known best: the smallest standard error, from batches of five samples, in the first half of the run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

BATCH = 5


@dataclass(frozen=True)
class Cut:
    """So many samples to leave out at the beginning; not `settled` if the best place is at the end of the half."""

    samples: int
    settled: bool


def mser5(series: NDArray[np.float64]) -> Cut:
    """Where to cut a series of samples in their order; nothing of a series of fewer than two batches."""
    batches = len(series) // BATCH
    if batches < 2:
        return Cut(0, False)
    means = series[: batches * BATCH].reshape(batches, BATCH).mean(axis=1)
    left = np.arange(batches, 0, -1)
    total, squares = np.cumsum(means[::-1])[::-1], np.cumsum(means[::-1] ** 2)[::-1]
    error = np.maximum(squares - total**2 / left, 0.0) / left**2
    half = batches // 2
    best = int(np.argmin(error[: half + 1]))
    return Cut(best * BATCH, best < half)
