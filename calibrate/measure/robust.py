"""Robust figures of repeated measurements: medians, spread, bootstrap intervals, drift. Knows nothing of steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Robust:
    """The median of `n` values, their median absolute deviation, and a 90% bootstrap interval of the median."""

    n: int
    median: float
    mad: float
    low: float
    high: float

    @property
    def doubt(self) -> float:
        """Half the interval over the median."""
        return (self.high - self.low) / 2 / self.median if self.median else float("inf")


def robust(values: Sequence[float], seed: int = 0, draws: int = 200) -> Robust:
    """The figures of some values; raises ValueError for none."""
    if not len(values):
        raise ValueError("no values; expected at least one")
    found = np.asarray(values, np.float64)
    median = float(np.median(found))
    stream = np.random.default_rng(seed)
    medians = np.median(found[stream.integers(0, len(found), (draws, len(found)))], axis=1)
    low, high = np.percentile(medians, (5, 95))
    return Robust(len(found), median, float(np.median(np.abs(found - median))), float(low), float(high))


@dataclass(frozen=True)
class Drift:
    """How a sentinel moved while everything else was measured.

    trend   relative change over the whole time, by the Theil-Sen slope
    spread  median absolute deviation from that line, relative
    """

    n: int
    trend: float
    spread: float

    @property
    def verdict(self) -> str:
        """In words: `steady`, `drifting`, or that there were too few looks to tell."""
        if self.n < 5:
            return f"not known: {self.n} looks at the sentinel; at least 5 are needed"
        if abs(self.trend) > max(0.05, 2 * self.spread):
            return f"drifting: the sentinel changed by {self.trend:+.1%} from beginning to end"
        return f"steady: the sentinel changed by {self.trend:+.1%}, its spread is {self.spread:.1%}"


def drift(times: Sequence[float], values: Sequence[float]) -> Drift:
    """The drift of a sentinel measured at some times."""
    if len(values) < 2:
        return Drift(len(values), 0.0, 0.0)
    t, v = np.asarray(times, np.float64), np.asarray(values, np.float64)
    first, second = np.triu_indices(len(v), 1)
    apart = t[second] - t[first]
    usable = apart > 0
    if not usable.any():
        return Drift(len(values), 0.0, 0.0)
    slope = float(np.median((v[second] - v[first])[usable] / apart[usable]))
    middle = float(np.median(v))
    line = np.median(v - slope * t) + slope * t
    return Drift(len(v), slope * float(t.max() - t.min()) / middle, float(np.median(np.abs(v - line))) / middle)
