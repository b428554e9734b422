"""Longest first: the request with the most predicted remaining tokens goes first.

For a job that ends when its last request ends, such as an offline batch: long requests do not start last, when slots
would be empty beside them (Graham 1969: on m equal machines longest first ends within 4/3 - 1/(3m) of the best
makespan). The mean wait is the worst of all orders, and short requests starve while long ones arrive.
"""

from __future__ import annotations

from policies.base.entry import Entry
from policies.base.predicted_order import OPTIONS, PredictedOrder, name_of_predictor
from policies.predictors.registry import predictor
from sim.policy.base import Order, Rank
from sim.policy.fixed_rank import FixedRank
from sim.sequence import Sequence


class LongestFirst(PredictedOrder):
    """Ranked by predicted remaining tokens, the most first."""

    def rank(self, seq: Sequence) -> Rank:
        """Negated predicted remaining tokens."""
        return (-self.remaining(seq),)

    def fixed_rank(self) -> FixedRank | None:
        """What is generated less the predicted output, unless the predictor learns."""
        return None if self.listeners else FixedRank("rank", lambda request: -self.predict(request), per_generated=1)


def make(seed: int, predict: object, error: object) -> Order:
    """An order by the predictor given. Raises ValueError for an impossible option."""
    return LongestFirst(predictor(predict, error, seed))


ENTRY = Entry(
    "Most predicted tokens to come first, for the earliest end of a batch.",
    make,
    OPTIONS,
    name_of_predictor,
    source="Graham, SIAM Journal on Applied Mathematics 1969",
)
