"""Aging: whoever waits becomes more urgent, one unit of rank for every `unit` of time.

Over an order by numbers (tokens, levels, priorities) it bounds starvation softly: a newcomer goes before one that
has waited only if its rank is better by more than the wait is worth. All who wait age alike, so their order is one
of rank x unit + arrival, which does not change while they wait; it costs no more than the order it wraps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from policies.deadlines import duration
from policies.entry import Entry, Option
from policies.wrapper import Wrapper
from sim.policy.base import Order, Rank, RankedOrder
from sim.request import SECOND, Nanoseconds, Sequence


class Aged(RankedOrder):
    """Ranked by the rank that `ranked` gave those who wait in it, each unit of which is worth `unit` of waiting."""

    def __init__(self, ranked: RankedOrder, unit: Nanoseconds) -> None:
        super().__init__()
        self.ranked = ranked
        self.unit = unit

    def rank(self, seq: Sequence) -> Rank:
        """When it would have to arrive with rank 0 to have this place; then the rest of the rank."""
        (first, *rest), _, _ = self.ranked.waiting[seq.index]
        assert not isinstance(first, str), "a rank begins with a number"
        return (first * self.unit + seq.request.arrival, *rest)


class Aging(Wrapper):
    """Everyone waits in the order that is wrapped, and goes by its aged rank."""

    def __init__(self, ranked: RankedOrder, unit: Nanoseconds) -> None:
        super().__init__(ranked)
        self.aged = Aged(ranked, unit)

    def push(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Join both."""
        super().push(seq, now, step)
        self.aged.push(seq, now, step)

    def push_back(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Return to both."""
        super().push_back(seq, now, step)
        self.aged.push_back(seq, now, step)

    def rejoin(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Back in both."""
        super().rejoin(seq, now, step)
        self.aged.rejoin(seq, now, step)

    def pop(self, seq: Sequence) -> None:
        """Leave both."""
        super().pop(seq)
        self.aged.pop(seq)

    def head(self, now: Nanoseconds, step: int) -> Sequence | None:
        """The smallest aged rank."""
        return self.aged.head(now, step)

    def __iter__(self) -> Iterator[Sequence]:
        return iter(self.aged)


def make(seed: int, order: Callable[[], Order], unit: object) -> Order:
    """Aging of the order asked for. Raises ValueError for one that does not go by a rank, which could improve."""
    ranked = order()
    if not isinstance(ranked, RankedOrder) or type(ranked).head is not RankedOrder.head:
        raise ValueError("order has no rank that could age; expected one such as sjf, srpt, priority or mlfq")
    return Aging(ranked, duration("unit", unit))


ENTRY = Entry(
    "The order it wraps, where waiting improves the rank: one unit for every `unit` of time.",
    make,
    {"order": Option("sjf", "order"), "unit": Option(SECOND // 20, "duration")},
)
