"""Shortest job first: the request expected to end soonest goes first.

Lowest mean wait when predictions are good; starves long requests, so pair it with a cap on waiting.
Knows nothing of slots, pages or time.
"""

from __future__ import annotations

from policies.entry import Entry
from policies.predict import predictor
from policies.predicted import OPTIONS, PredictedOrder, name_of_predictor
from sim.policy.base import Order, Rank
from sim.request import Sequence


class ShortestJobFirst(PredictedOrder):
    """Ranked by predicted output length."""

    def rank(self, seq: Sequence) -> Rank:
        """The predicted number of output tokens."""
        return (self.predict(seq.request),)


def make(seed: int, predict: object, error: object) -> Order:
    """An order by the predictor that the options ask for. Raises ValueError for options that ask for none."""
    return ShortestJobFirst(predictor(predict, error, seed))


ENTRY = Entry(
    "Shortest predicted output first.",
    make,
    OPTIONS,
    name_of_predictor,
    source="Smith, Naval Research Logistics Quarterly 1956",
)
