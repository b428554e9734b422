"""Robust figures of repeated measurements: median, spread, bootstrap interval, drift."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import median_abs_deviation, theilslopes


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


def robust(visits: Sequence[Sequence[float]], seed: int = 0, draws: int = 200) -> Robust:
    """The figures of the values of several visits; raises ValueError for no values.

    The interval is the percentile interval of so many medians of resampled visits: steps of one visit share its
    clocks and caches, so they are no independent values. With one visit its steps are resampled.
    """
    values = [np.asarray(visit, np.float64) for visit in visits if len(visit)]
    if not values:
        raise ValueError("no values; expected at least one")
    whole = np.concatenate(values)
    units = values if len(values) > 1 else [whole[place : place + 1] for place in range(len(whole))]
    chosen = np.random.default_rng(seed).integers(0, len(units), (draws, len(units)))
    medians = [float(np.median(np.concatenate([units[place] for place in row]))) for row in chosen]
    low, high = np.quantile(medians, [0.05, 0.95])
    return Robust(len(whole), float(np.median(whole)), float(median_abs_deviation(whole)), float(low), float(high))


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
