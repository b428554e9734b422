"""Shortest remaining processing time: the request with the fewest predicted remaining tokens goes first.

Differs from shortest job first for preempted requests: tokens already generated are subtracted, so a long request
that lost its pages near its end goes before a short new one. With `preemptive`, a waiting request takes the slot of
the running request with the most remaining tokens, if that has more than itself, at a step boundary. This gives the
least mean response time of all orders on one server where preemption is free (Schrage 1968). Here preemption costs a
recomputation, or two copies under `preemption: swap`, and prompts are work that the rank ignores. Without
`preemptive`, requests are preempted only for lack of pages. Long requests starve: pair it with `max_wait`, under
which a request past the cap keeps its slot.
"""

from __future__ import annotations

from collections.abc import Iterable

from policies.base.entry import Entry, Option
from policies.base.option_values import flag
from policies.base.predicted_order import OPTIONS, PredictedOrder, name_of_predictor
from policies.predictors.base import Exact, Predictor
from policies.predictors.registry import predictor
from sim.policy.base import Order, Rank
from sim.policy.fixed_rank import FixedRank
from sim.request import Nanoseconds
from sim.sequence import Sequence


class ShortestRemaining(PredictedOrder):
    """Ranked by predicted remaining tokens."""

    def __init__(self, predict: Predictor = Exact(), preemptive: bool = False) -> None:  # noqa: B008
        super().__init__(predict)
        self.preempts = preemptive
        if preemptive:
            self.listeners = (self,)
        self.predicted: dict[int, float] = {}  # output tokens of all waiting and running sequences, if preemptive

    def rank(self, seq: Sequence) -> Rank:
        """The predicted remaining tokens."""
        remaining = self.remaining(seq)
        if self.preempts:
            self.predicted[seq.index] = remaining + seq.known - seq.request.prompt
        return (remaining,)

    def fixed_rank(self) -> FixedRank | None:
        """The predicted output less what is generated, unless the predictor learns or the order preempts."""
        return None if self.listeners else FixedRank("rank", self.predict, per_generated=-1)

    def displaced(self, head: Sequence, running: Iterable[Sequence], now: Nanoseconds, step: int) -> Sequence | None:
        """The running sequence with the most remaining tokens, if more than the head's; ties to the last admitted."""
        most, named = self.predicted[head.index] - head.generated(step), None
        for seq in running:
            to_come = self.predicted[seq.index] - seq.generated(step)
            if not seq.over and to_come >= most and (named is not None or to_come > most):
                most, named = to_come, seq
        return named

    def left(self, seq: Sequence, step: int) -> None:
        """Discard its prediction, and notify a predictor that learns."""
        self.predicted.pop(seq.index, None)
        super().left(seq, step)


def make(seed: int, predict: object, error: object, preemptive: object) -> Order:
    """An order by the predictor given. Raises ValueError for an impossible option."""
    return ShortestRemaining(predictor(predict, error, seed), flag("preemptive", preemptive))


ENTRY = Entry(
    "Fewest predicted tokens to come first; with `preemptive`, also before those who run.",
    make,
    OPTIONS | {"preemptive": Option(False)},
    name_of_predictor,
    source="Schrage, Operations Research 1968",
)
