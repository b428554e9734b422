"""Shortest remaining time: the request with the fewest predicted tokens to come goes first.

Differs from shortest job first for preempted requests only: what they have already counts for them, so a long
request that lost its pages near its end comes back before a short newcomer. Preemptive, it has the least mean
response time of all orders on one server (Schrage 1968); here nobody is preempted for its sake, since an engine
preempts for pages alone. Starves long requests: pair it with `max_wait`.
"""

from __future__ import annotations

from policies.entry import Entry
from policies.predict import predictor
from policies.predicted import OPTIONS, PredictedOrder, name_of_predictor
from sim.policy import Order, Rank
from sim.request import Sequence


class ShortestRemaining(PredictedOrder):
    """Ranked by predicted output less what has been generated."""

    def rank(self, seq: Sequence) -> Rank:
        """The predicted number of tokens to come."""
        return (self.remaining(seq),)


def make(seed: int, predict: object, error: object) -> Order:
    """An order by the predictor that the options ask for. Raises ValueError for options that ask for none."""
    return ShortestRemaining(predictor(predict, error, seed))


ENTRY = Entry(
    "Fewest predicted tokens to come first; takes nobody's slot.",
    make,
    OPTIONS,
    name_of_predictor,
    source="Schrage, Operations Research 1968",
)
