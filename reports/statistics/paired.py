"""The paired difference of two policies that ran on the same requests.

With common random numbers the variation between seeds is in both runs and cancels in their difference, so the
interval is narrower than those of the two means.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from reports.statistics.intervals import CONFIDENCE, Estimate, mean


@dataclass(frozen=True)
class Difference:
    """The mean of second minus first over the seeds in which both are finite; `left_out` counts the others."""

    estimate: Estimate | None
    left_out: int = 0

    @property
    def differ(self) -> bool:
        """Whether the interval excludes 0."""
        return self.estimate is not None and not self.estimate.holds(0.0)


def difference(first: Sequence[float], second: Sequence[float], confidence: float = CONFIDENCE) -> Difference:
    """The mean of second minus first with its t-interval; values at the same place are of the same seed.

    Pairs with an infinite value (it never occurred) or NaN (it is undefined) are left out and counted. Raises
    ValueError for sequences of unequal length.
    """
    pairs = [b - a for a, b in zip(first, second, strict=True) if math.isfinite(a) and math.isfinite(b)]
    left_out = len(first) - len(pairs)
    return Difference(mean(pairs, confidence) if pairs else None, left_out)
