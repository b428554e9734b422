"""Shortest job first: the request expected to end soonest goes first.

Lowest mean wait when predictions are good; starves long requests, so pair it with a cap on waiting.
Knows nothing of slots, pages or time.
"""

from __future__ import annotations

from policies.predict import Exact, Predictor
from sim.policy import Rank, RankedOrder
from sim.request import Sequence


class ShortestJobFirst(RankedOrder):
    """Ranked by predicted output length."""

    def __init__(self, predict: Predictor = Exact()) -> None:  # noqa: B008
        super().__init__()
        self.predict = predict

    def rank(self, seq: Sequence) -> Rank:
        """The predicted number of output tokens."""
        return (self.predict(seq.request),)
