"""Aging: whoever waits becomes more urgent, one unit of rank for every `unit` of time.

Over an order by numbers (tokens, levels, priorities) it bounds starvation softly: a newcomer goes before one that
has waited only if its rank is better by more than the wait is worth. All who wait age alike, so their order is one
of rank x unit + arrival, which does not change while they wait; it costs no more than the order it wraps.
"""

from __future__ import annotations

from collections.abc import Callable

from policies.deadlines import duration
from policies.entry import Entry, Option
from sim.policy import Order, Rank, RankedOrder
from sim.request import SECOND, Nanoseconds, Sequence


class Aging(RankedOrder):
    """Ranked by the rank of `ranked`, each of whose units is worth `unit` of waiting."""

    def __init__(self, ranked: RankedOrder, unit: Nanoseconds) -> None:
        super().__init__()
        self.ranked = ranked
        self.unit = unit
        self.counts_service = ranked.counts_service

    def rank(self, seq: Sequence) -> Rank:
        """When it would have to arrive with rank 0 to have this place; then the rest of the rank."""
        first, *rest = self.ranked.rank(seq)
        assert not isinstance(first, str), "a rank begins with a number"
        return (first * self.unit + seq.request.arrival, *rest)

    def left(self, seq: Sequence, step: int) -> None:
        """The wrapped order hears of it, for its predictor."""
        self.ranked.left(seq, step)


def make(seed: int, order: Callable[[], Order], unit: object) -> Order:
    """Aging of the order asked for. Raises ValueError for one that has no rank to improve."""
    ranked = order()
    if not isinstance(ranked, RankedOrder):
        raise ValueError("order has no rank that could age; expected one such as sjf, srpt, priority or mlfq")
    return Aging(ranked, duration("unit", unit))


ENTRY = Entry(
    "The order it wraps, where waiting improves the rank: one unit for every `unit` of time.",
    make,
    {"order": Option("sjf", "order"), "unit": Option(SECOND // 20, "duration")},
)
