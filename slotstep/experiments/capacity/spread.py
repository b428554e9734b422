"""The error of an answer that is due to the step cost: at the slow end of its interval, or under draws of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SURE = 0.95


@dataclass(frozen=True)
class SlowEnd:
    """The answer if steps last as long as 95% of costs made like this one do at most.

    at               the largest rate, or the fewest replicas; None if no value meets the objectives
    decode, prompts  factors of steps of decodes alone, and of steps with prompts
    source           what the interval comes from
    unknown          why the cost has no interval; all else is None then
    """

    at: float | None = None
    decode: float | None = None
    prompts: float | None = None
    source: str | None = None
    unknown: str | None = None


@dataclass(frozen=True)
class Spread:
    """The largest rate, or the fewest replicas, under each draw of the step cost.

    found   one a draw; None where no value meets the objectives
    source  what the uncertainty of the cost comes from
    """

    found: tuple[float | None, ...]
    source: str

    @property
    def failed(self) -> int:
        """Draws under which no value meets the objectives."""
        return sum(each is None for each in self.found)

    def quantile(self, share: float, many: bool) -> float | None:
        """The value that `share` of the draws do not exceed, by plotting positions (i - 0.5) / n.

        A draw without an answer counts as rate 0, or, if `many` (replicas are sought), as infinitely many; None if
        the quantile is one of those. Replicas are rounded up.
        """
        worst = np.inf if many else 0.0
        values = sorted(worst if each is None else each for each in self.found)
        if many:
            place = int(np.ceil(share * len(values) - 0.5))
            found = values[min(max(place, 0), len(values) - 1)]
        else:
            found = float(np.quantile(values, share, method="hazen"))
        return None if found == worst else found

    def sure(self, many: bool) -> float | None:
        """The rate that is met, or the replicas that suffice, under SURE of the draws; None if none does."""
        return self.quantile(SURE if many else 1 - SURE, many)
