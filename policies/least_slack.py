"""Least slack first: the request with the least time left until it must start to meet its deadline goes first.

Slack is the time left for waiting: deadline - now - remaining tokens x token_time, with deadlines as in `edf`. The
slack of all waiting requests decreases at the same rate, so the order by slack is the order by
deadline - remaining tokens x token_time, which does not change while they wait. Use it where the deadline is for the
whole answer; where it is for the first token, use `edf`.
"""

from __future__ import annotations

from policies import edf
from policies.base.entry import Entry, Option
from policies.base.option_values import duration
from policies.base.predicted_order import OPTIONS, PredictedOrder, name_of_predictor
from policies.edf import Deadlines
from policies.predictors.base import Predictor
from policies.predictors.registry import predictor
from sim.policy.base import Order, Rank
from sim.request import SECOND, Nanoseconds
from sim.sequence import Sequence


class LeastSlack(PredictedOrder):
    """Ranked by the latest instant at which a request may start to generate its remaining tokens."""

    def __init__(self, deadlines: Deadlines, token_time: Nanoseconds, predict: Predictor) -> None:
        super().__init__(predict)
        self.deadlines = deadlines
        self.token_time = token_time

    def rank(self, seq: Sequence) -> Rank:
        """The deadline minus the predicted time of the remaining tokens."""
        return (self.deadlines.of(seq) - self.remaining(seq) * self.token_time,)


def make(seed: int, within: object, tenants: object, token_time: object, predict: object, error: object) -> Order:
    """An order by these deadlines and this predictor. Raises ValueError for an impossible option."""
    deadlines = edf.deadlines(within, tenants)
    return LeastSlack(deadlines, duration("token_time", token_time), predictor(predict, error, seed))


ENTRY = Entry(
    "Least slack first: the time to the deadline less the predicted time of the tokens to come.",
    make,
    edf.OPTIONS | {"token_time": Option(SECOND // 50, "duration")} | OPTIONS,
    name_of_predictor,
)
