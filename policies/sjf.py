"""Shortest job first: the request with the fewest predicted output tokens goes first.

The lowest mean wait of all non-preemptive orders where predictions are accurate. Long requests starve: pair it with
`max_wait`.
"""

from __future__ import annotations

from policies.base.entry import Entry
from policies.base.predicted_order import OPTIONS, PredictedOrder, name_of_predictor
from policies.predictors.registry import predictor
from sim.policy.base import Order, Rank
from sim.policy.fixed_rank import FixedRank
from sim.sequence import Sequence


class ShortestJobFirst(PredictedOrder):
    """Ranked by predicted output length."""

    def rank(self, seq: Sequence) -> Rank:
        """The predicted number of output tokens."""
        return (self.predict(seq.request),)

    def fixed_rank(self) -> FixedRank | None:
        """The predicted output, unless the predictor learns."""
        return None if self.listeners else FixedRank("rank", self.predict)


def make(seed: int, predict: object, error: object) -> Order:
    """An order by the predictor given. Raises ValueError for an impossible option."""
    return ShortestJobFirst(predictor(predict, error, seed))


ENTRY = Entry(
    "Shortest predicted output first.",
    make,
    OPTIONS,
    name_of_predictor,
    source="Smith, Naval Research Logistics Quarterly 1956",
)
