"""Shortest remaining time: the request with the fewest predicted tokens to come goes first.

Differs from shortest job first for preempted requests: what they already have counts for them, so a long request
that lost its pages near its end comes back before a short newcomer. With `preemptive`, whoever waits takes the slot
of the running request with the most to come, if that is more than its own, at the step boundary: the least mean
response time of all orders on one server (Schrage 1968), where preemption costs nothing. Here it costs a
recomputation, or two copies under `preemption: swap`, and prompts are work that is not counted. Without it nobody
is preempted for its sake. Starves long requests: pair it with `max_wait`, past which a request keeps its slot too.
"""

from __future__ import annotations

from collections.abc import Iterable

from policies.entry import Entry, Option
from policies.predict import Exact, Predictor, predictor
from policies.predicted import OPTIONS, PredictedOrder, name_of_predictor
from sim.policy.base import Order, Rank
from sim.request import Nanoseconds, Sequence


class ShortestRemaining(PredictedOrder):
    """Ranked by predicted output less what has been generated."""

    def __init__(self, predict: Predictor = Exact(), preemptive: bool = False) -> None:  # noqa: B008
        super().__init__(predict)
        self.preempts = preemptive
        self.counts_service |= preemptive
        self.predicted: dict[int, float] = {}  # of all who wait or run, if preemptive

    def rank(self, seq: Sequence) -> Rank:
        """The predicted number of tokens to come."""
        remaining = self.remaining(seq)
        if self.preempts:
            self.predicted[seq.index] = remaining + seq.known - seq.request.prompt
        return (remaining,)

    def displaced(self, head: Sequence, running: Iterable[Sequence], now: Nanoseconds, step: int) -> Sequence | None:
        """Whoever has most to come, of these the last admitted, if it is more than the head's."""
        most, named = self.predicted[head.index] - head.generated(step), None
        for seq in running:
            to_come = self.predicted[seq.index] - seq.generated(step)
            if not seq.over and to_come >= most and (named is not None or to_come > most):
                most, named = to_come, seq
        return named

    def left(self, seq: Sequence, step: int) -> None:
        """Forget it."""
        self.predicted.pop(seq.index, None)
        super().left(seq, step)


def make(seed: int, predict: object, error: object, preemptive: object) -> Order:
    """An order by the predictor that the options ask for. Raises ValueError for options that ask for none."""
    if not isinstance(preemptive, bool):
        raise ValueError(f"preemptive is {preemptive!r}; expected true or false")
    return ShortestRemaining(predictor(predict, error, seed), preemptive)


ENTRY = Entry(
    "Fewest predicted tokens to come first; with `preemptive`, also before those who run.",
    make,
    OPTIONS | {"preemptive": Option(False)},
    name_of_predictor,
    source="Schrage, Operations Research 1968",
)
