"""What orders by predicted length share: a predictor, and that it hears of the ends if it learns."""

from __future__ import annotations

from policies.entry import Option
from policies.history import History
from policies.predict import Exact, Predictor, predictor
from sim.policy.base import RankedOrder
from sim.request import Sequence

OPTIONS = {"predict": Option("exact"), "error": Option(0)}


class PredictedOrder(RankedOrder):
    """A ranked order with a predictor of output lengths."""

    def __init__(self, predict: Predictor = Exact()) -> None:  # noqa: B008
        super().__init__()
        self.predict = predict
        self.counts_service = isinstance(predict, History)

    def remaining(self, seq: Sequence) -> float:
        """Predicted tokens to come; below 0 once the sequence has outgrown its prediction."""
        return self.predict(seq.request) - generated(seq)

    def left(self, seq: Sequence, step: int) -> None:
        """A request ended: a predictor that learns hears of it."""
        if isinstance(self.predict, History):
            self.predict.ended(seq)


def generated(seq: Sequence) -> int:
    """Tokens that a waiting sequence has been given before it was preempted; 0 for a newcomer."""
    return seq.known - seq.request.prompt


def name_of_predictor(predict: object, error: object, **others: object) -> str:
    """What results call the predictor that these options ask for."""
    return predictor(predict, error, seed=0).name
