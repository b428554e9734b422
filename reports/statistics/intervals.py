"""Confidence intervals: of a mean by Student's t, of a percentile by order statistics.

A sample that never occurred (the TTFT of a rejected request) is infinite: it counts, and a percentile that falls
among such samples is infinite too. That is why `scipy.stats.t.interval` (NaN if all samples are equal), `np.quantile`
(NaN between infinities) and `scipy.stats.quantile_test` (no effective sample size) are not used here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

CONFIDENCE = 0.95

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A value, the bounds of its two-sided interval at `confidence`, and the number of samples `n`.

    `low` is -inf and `high` inf where the samples give no bound.
    """

    value: float
    low: float
    high: float
    n: int
    confidence: float = CONFIDENCE

    def holds(self, value: float) -> bool:
        """Whether a value is in the interval."""
        return self.low <= value <= self.high


def mean(samples: Sequence[float] | Floats, confidence: float = CONFIDENCE) -> Estimate:
    """The mean of independent samples with Student's t-interval; bounds are infinite for fewer than two samples.

    An infinite sample makes the mean and the bounds infinite. Raises ValueError without samples.
    """
    values = np.asarray(samples, float)
    if not len(values):
        raise ValueError("no samples; expected at least one")
    centre = float(values.mean())
    if math.isinf(centre):
        return Estimate(centre, -math.inf, math.inf, len(values), confidence)
    if len(values) < 2:
        return Estimate(centre, -math.inf, math.inf, 1, confidence)
    reach = float(stats.t.ppf((1 + confidence) / 2, len(values) - 1)) * float(stats.sem(values))
    return Estimate(centre, centre - reach, centre + reach, len(values), confidence)


def percentile(
    samples: Sequence[float] | Floats,
    share: float,
    confidence: float = CONFIDENCE,
    independent: float | None = None,
) -> Estimate:
    """The `share` quantile (0 < share < 1) of samples, with an interval between two of their order statistics.

    The number of samples below the true quantile is binomial; the ranks of the bounds are quantiles of that law
    (David and Nagaraja, Order Statistics, 7.1). `independent` is the effective number of independent samples, if it
    is lower than the number of samples. A bound whose rank is not among the samples is infinite. Raises ValueError
    without samples and for a share outside (0, 1).
    """
    values = np.sort(np.asarray(samples, float))
    n = len(values)
    if not n:
        raise ValueError("no samples; expected at least one")
    if not 0 < share < 1:
        raise ValueError(f"the share is {share}; expected one between 0 and 1")
    worth = n if independent is None else min(max(int(independent), 1), n)
    below, above = (float(stats.binom.ppf((1 + side * confidence) / 2, worth, share)) for side in (-1, 1))
    low, high = int(below * n / worth), math.ceil((above + 1) * n / worth)
    return Estimate(
        quantile(values, share),
        float(values[low - 1]) if low >= 1 else -math.inf,
        float(values[high - 1]) if high <= n else math.inf,
        n,
        confidence,
    )


def pooled_percentile(groups: Sequence[Floats], share: float, confidence: float = CONFIDENCE) -> Estimate:
    """The `share` quantile of the samples of all runs; runs are independent, samples of one run may be correlated.

    `groups` holds one array of samples per run. The effective number of independent samples follows from the
    variance, between runs, of the share of samples below the quantile. Bounds are infinite for fewer than two runs.
    Raises ValueError as `percentile` does.
    """
    whole = np.concatenate([np.asarray(group, float) for group in groups])
    if len(groups) < 2:
        alone = percentile(whole, share, confidence)
        return Estimate(alone.value, -math.inf, math.inf, alone.n, confidence)
    centre = quantile(np.sort(whole), share)
    shares = np.array([np.mean(np.asarray(group, float) <= centre) for group in groups if len(group)])
    variance = float(stats.sem(shares)) ** 2
    wider = float(stats.t.ppf((1 + confidence) / 2, len(shares) - 1) / stats.norm.ppf((1 + confidence) / 2))
    worth = share * (1 - share) / (variance * wider**2) if variance else None
    return percentile(whole, share, confidence, worth)


def quantile(ordered: Floats, share: float) -> float:
    """The quantile of ascending samples by linear interpolation; infinite next to an infinite sample."""
    spot = share * (len(ordered) - 1)
    below = math.floor(spot)
    low, high = float(ordered[below]), float(ordered[min(below + 1, len(ordered) - 1)])
    return low if spot == below or low == high else low + (high - low) * (spot - below)
