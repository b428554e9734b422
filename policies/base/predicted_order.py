"""Orders by predicted output length: the predictor, and its updates when requests end."""

from __future__ import annotations

from policies.base.entry import Option
from policies.predictors.base import Exact, Predictor
from policies.predictors.learned import LearnedPredictor
from policies.predictors.registry import predictor
from sim.policy.base import RankedOrder
from sim.policy.listener import Listener
from sim.sequence import Sequence

OPTIONS = {"predict": Option("exact"), "error": Option(0)}


class PredictedOrder(RankedOrder, Listener):
    """A ranked order with a predictor of output lengths; a predictor that learns is notified of every end."""

    def __init__(self, predict: Predictor = Exact()) -> None:  # noqa: B008
        super().__init__()
        self.predict = predict
        if isinstance(predict, LearnedPredictor):
            self.listeners = (self,)

    def remaining(self, seq: Sequence) -> float:
        """Predicted remaining tokens; below 0 once the sequence has generated more than predicted."""
        return self.predict(seq.request) - generated(seq)

    def left(self, seq: Sequence, step: int) -> None:
        """Notify a predictor that learns."""
        if isinstance(self.predict, LearnedPredictor):
            self.predict.ended(seq)


def generated(seq: Sequence) -> int:
    """Tokens that a waiting sequence had generated before it was preempted; 0 for a new one."""
    return seq.known - seq.request.prompt


def name_of_predictor(predict: object, error: object, **others: object) -> str:
    """The name in results of the predictor given by these options."""
    return predictor(predict, error, seed=0).name
