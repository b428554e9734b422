"""Statistics of arrival times and lengths: rate, burstiness, clock ticks, percentiles, tails."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.accounting.rates import by_gaps, over_span
from sim.request import SECOND, Nanoseconds

Integers = NDArray[np.int64]
PERCENTILES = (1, 5, 25, 50, 75, 90, 95, 99, 99.9)
WINDOWS: tuple[Nanoseconds, ...] = (SECOND // 10, SECOND, 10 * SECOND, 60 * SECOND)
TAIL_SHARE = 0.05
FEWEST_IN_TAIL = 10
COARSE: Nanoseconds = SECOND // 10
ON_TICK = 0.01


def dispersion(arrivals: Integers, window: Nanoseconds = SECOND) -> float | None:
    """Variance over mean of the numbers of arrivals in the whole windows from 0 on; a Poisson process has 1.

    None for fewer than two windows, or no arrival in any.
    """
    windows = int(arrivals[-1]) // window if len(arrivals) else 0
    inside = arrivals[: np.searchsorted(arrivals, windows * window)]
    if windows < 2 or not len(inside):
        return None
    return float((occupied(inside, window) ** 2).sum() / len(inside) - len(inside) / windows)


def occupied(arrivals: Integers, window: Nanoseconds) -> Integers:
    """The number of arrivals in each non-empty window."""
    places = arrivals // window
    counts: Integers = np.diff(np.flatnonzero(np.diff(places, prepend=-1, append=-1)))
    return counts


def gap_cv(arrivals: Integers) -> float | None:
    """Standard deviation over mean of the gaps between arrivals; None without two gaps or without any time."""
    gaps = np.diff(arrivals)
    return float(gaps.std() / gaps.mean()) if len(gaps) > 1 and gaps.any() else None


def tick(arrivals: Integers) -> tuple[Nanoseconds, bool] | None:
    """The resolution of a coarse clock (at least 100 ms, in ns), and whether it is exact; None if there is none.

    Exactly: every gap is a multiple of it. Roughly: arrivals come together in groups, and nine in ten gaps
    between groups are within 1% of a multiple of the median one.
    """
    gaps = np.diff(arrivals)
    gaps = gaps[gaps > 0]
    if len(gaps) < FEWEST_IN_TAIL:
        return None
    exact = int(np.gcd.reduce(gaps))
    if exact >= COARSE:
        return exact, True
    median = int(np.median(gaps))
    off = np.abs(gaps / median - np.rint(gaps / median))
    grouped = len(gaps) < 0.5 * len(arrivals) and median >= COARSE
    return (median, False) if grouped and (off <= ON_TICK).mean() >= 0.9 else None


def tail_index(values: Integers) -> float | None:
    """Hill's estimate of the exponent a in P(X > x) ~ x^-a, from the largest 5% of the values (at least 10).

    The smaller, the heavier the tail: below 2 the variance is infinite. None when there are too few values or
    the largest ones are all equal, as under a cap.
    """
    k = max(FEWEST_IN_TAIL, int(len(values) * TAIL_SHARE))
    if len(values) <= k:
        return None
    largest = np.sort(values)[-k - 1 :].astype(np.float64)
    excess = float(np.log(largest[1:] / largest[0]).mean())
    return 1 / excess if excess > 0 else None


def lengths(values: Integers) -> dict[str, Any]:
    """Mean, extremes, percentiles (interpolated), tail index and the logarithm's mean and deviation."""
    logs = np.log(values)
    points = np.percentile(values, PERCENTILES)
    return {
        "mean": float(values.mean()),
        "std": float(values.std()),
        "min": int(values.min()),
        **{f"p{p:g}": float(point) for p, point in zip(PERCENTILES, points, strict=True)},
        "max": int(values.max()),
        "tail_index": tail_index(values),
        "log_mean": float(logs.mean()),
        "log_std": float(logs.std()),
    }


def arrivals(times: Integers) -> dict[str, Any]:
    """Rate, CV of the gaps, dispersion by window, ticks, and concentration in the busiest windows."""
    gaps = np.diff(times)
    grid = tick(times)
    return {
        "rate": over_span(times),
        "rate_by_gaps": by_gaps(times),
        "cv": gap_cv(times),
        "dispersion": {f"{window / SECOND:g}s": dispersion(times, window) for window in WINDOWS},
        "ties": int((gaps == 0).sum()),
        "longest_gap_s": int(gaps.max()) / SECOND if len(gaps) else None,
        "tick_s": grid[0] / SECOND if grid else None,
        "tick_exact": grid[1] if grid else None,
        "bursts": {f"{window / SECOND:g}s": busiest(times, window) for window in WINDOWS[1:]},
    }


def busiest(times: Integers, window: Nanoseconds) -> dict[str, float] | None:
    """Of windows from 0 on: most arrivals, that over the mean, share of the busiest tenth, share of empty ones.

    None for fewer than two windows.
    """
    if not len(times) or times[-1] < window:
        return None
    windows = int(times[-1]) // window + 1
    counts = np.sort(occupied(times, window))[::-1]
    return {
        "most": int(counts[0]),
        "peak_over_mean": float(counts[0] * windows / len(times)),
        "busiest_tenth": float(counts[: max(1, windows // 10)].sum() / len(times)),
        "empty": 1 - len(counts) / windows,
    }


def rank_correlation(first: Integers, second: Integers) -> float | None:
    """Spearman's rank correlation; None if all values of either are equal."""
    from scipy.stats import rankdata

    a, b = rankdata(first), rankdata(second)
    if len(a) < 2 or not a.std() or not b.std():
        return None
    found = float(np.corrcoef(a, b)[0, 1])
    return found if math.isfinite(found) else None
