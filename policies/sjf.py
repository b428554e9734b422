"""Shortest job first: the request expected to end soonest goes first.

Lowest mean wait when predictions are good; starves long requests, so pair it with a cap on waiting.
Knows nothing of slots, pages or time.
"""

from __future__ import annotations

from policies.entry import Entry, Option
from policies.predict import Exact, Predictor, predictor
from sim.policy import Order, Rank, RankedOrder
from sim.request import Sequence


class ShortestJobFirst(RankedOrder):
    """Ranked by predicted output length."""

    def __init__(self, predict: Predictor = Exact()) -> None:  # noqa: B008
        super().__init__()
        self.predict = predict

    def rank(self, seq: Sequence) -> Rank:
        """The predicted number of output tokens."""
        return (self.predict(seq.request),)


def make(seed: int, predict: object, error: object) -> Order:
    """An order by the predictor that the options ask for. Raises ValueError for options that ask for none."""
    return ShortestJobFirst(predictor(predict, error, seed))


def name_of_predictor(predict: object, error: object) -> str:
    """What results call that predictor."""
    return predictor(predict, error, seed=0).name


ENTRY = Entry(
    "Shortest predicted output first.",
    make,
    {"predict": Option("exact"), "error": Option(0)},
    name_of_predictor,
)
