"""Two policies on the same requests: the difference seed by seed, its interval, and a sentence that says it.

Under common random numbers a seed's luck is in both runs, so it is not in their difference: intervals are
narrower than those of the two means. Knows nothing of what the policies are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from reports.statistics.intervals import CONFIDENCE, Estimate, mean


@dataclass(frozen=True)
class Difference:
    """The second's value minus the first's, over the seeds in which both have one; `left_out` of the others."""

    estimate: Estimate | None
    left_out: int = 0

    @property
    def differ(self) -> bool:
        """Whether the interval leaves 0 out: more than the seeds' luck."""
        return self.estimate is not None and not self.estimate.holds(0.0)


def difference(first: Sequence[float], second: Sequence[float], confidence: float = CONFIDENCE) -> Difference:
    """How far the second is above the first, from pairs of values of the same seed.

    Pairs in which a value is infinite (it never came) or absent (NaN) have no difference and are counted.
    Raises ValueError for lists of unequal length.
    """
    pairs = [b - a for a, b in zip(first, second, strict=True) if math.isfinite(a) and math.isfinite(b)]
    left_out = len(first) - len(pairs)
    return Difference(mean(pairs, confidence) if pairs else None, left_out)
