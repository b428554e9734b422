"""Robust figures of repeated measurements: median, spread, bootstrap interval, drift, by scipy.stats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import bootstrap, median_abs_deviation, theilslopes


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
        """Half the interval over the median; infinite for a median of 0."""
        return (self.high - self.low) / 2 / self.median if self.median else float("inf")


def robust(values: Sequence[float], seed: int = 0, draws: int = 200) -> Robust:
    """The figures of some values, the interval from so many draws; raises ValueError for no values.

    The interval of a single value is the value.
    """
    if not len(values):
        raise ValueError("no values; expected at least one")
    found = np.asarray(values, np.float64)
    low = high = median = float(np.median(found))
    if len(found) > 1:
        interval = bootstrap(
            (found,),
            np.median,
            n_resamples=draws,
            confidence_level=0.9,
            method="percentile",
            random_state=np.random.default_rng(seed),
        ).confidence_interval
        low, high = float(interval.low), float(interval.high)
    return Robust(len(found), median, float(median_abs_deviation(found)), low, high)


@dataclass(frozen=True)
class Drift:
    """How a control point changed while everything else was measured.

    trend   relative change over the whole time, by the Theil-Sen slope
    spread  median absolute deviation from that line, relative
    """

    n: int
    trend: float
    spread: float

    @property
    def verdict(self) -> str:
        """In words: `steady`, `drifting`, or that there were too few measurements to decide."""
        if self.n < 5:
            return f"not known: {self.n} measurements of the control point; at least 5 are needed"
        if abs(self.trend) > max(0.05, 2 * self.spread):
            return f"drifting: the control point changed by {self.trend:+.1%} from beginning to end"
        return f"steady: the control point changed by {self.trend:+.1%}, its spread is {self.spread:.1%}"


def drift(times: Sequence[float], values: Sequence[float]) -> Drift:
    """The drift of a control point measured at these times; none for fewer than two times."""
    if len(set(times)) < 2:
        return Drift(len(values), 0.0, 0.0)
    t, v = np.asarray(times, np.float64), np.asarray(values, np.float64)
    slope, middle = float(theilslopes(v, t).slope), float(np.median(v))
    return Drift(len(v), slope * float(np.ptp(t)) / middle, float(median_abs_deviation(v - slope * t)) / middle)
