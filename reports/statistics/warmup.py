"""Removal of the warm-up of a run by MSER-5 (White, Cobb and Spratt 2000).

A run starts with an empty engine, which biases its first samples. MSER-5 truncates where the standard error of the
mean of the remaining batches of five samples is smallest, searching the first half of the run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

BATCH = 5


@dataclass(frozen=True)
class Cut:
    """The number of samples to leave out at the start; not `settled` if the minimum is the last place searched."""

    samples: int
    settled: bool


def mser5(series: NDArray[np.float64]) -> Cut:
    """The truncation point of a one-dimensional series in order of time; 0 samples for fewer than two batches."""
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
