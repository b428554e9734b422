"""Aging: the rank of a waiting request improves by one for every `unit` of time.

Over an order by numbers (tokens, levels, priorities) it limits starvation without a hard cap: a later request goes
before a waiting one only if its rank is better by more than the wait counts for. All waiting requests age at the same
rate, so their order is that of rank x unit + arrival, which does not change while they wait; the cost is that of the
wrapped order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from policies.base.entry import Entry, Option
from policies.base.option_values import duration
from sim.policy.base import Order, Rank, RankedOrder
from sim.policy.wrapper import Wrapper
from sim.request import SECOND, Nanoseconds
from sim.sequence import Sequence


class Aged(RankedOrder):
    """Ranked by the arrival plus `unit` times the rank that the sequence has in `ranked`."""

    def __init__(self, ranked: RankedOrder, unit: Nanoseconds) -> None:
        super().__init__()
        self.ranked = ranked
        self.unit = unit

    def rank(self, seq: Sequence) -> Rank:
        """The arrival that a sequence of rank 0 would need for this place, then the rest of the rank."""
        (first, *rest), _, _ = self.ranked.waiting[seq.index]
        assert not isinstance(first, str), "a rank begins with a number"
        return (first * self.unit + seq.request.arrival, *rest)


class Aging(Wrapper):
    """Sequences wait in the wrapped order, which ranks them, and are admitted by aged rank."""

    def __init__(self, ranked: RankedOrder, unit: Nanoseconds) -> None:
        super().__init__(ranked)
        self.aged = Aged(ranked, unit)

    def push(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Join the wrapped order and the aged one."""
        super().push(seq, now, step)
        self.aged.push(seq, now, step)

    def push_back(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Return to the wrapped order and the aged one."""
        super().push_back(seq, now, step)
        self.aged.push_back(seq, now, step)

    def rejoin(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Rejoin the wrapped order and the aged one."""
        super().rejoin(seq, now, step)
        self.aged.rejoin(seq, now, step)

    def pop(self, seq: Sequence) -> None:
        """Leave the wrapped order and the aged one."""
        super().pop(seq)
        self.aged.pop(seq)

    def head(self, now: Nanoseconds, step: int) -> Sequence | None:
        """The sequence with the smallest aged rank."""
        return self.aged.head(now, step)

    def __iter__(self) -> Iterator[Sequence]:
        return iter(self.aged)


def make(seed: int, order: Callable[[], Order], unit: object) -> Order:
    """Aging over the order given. Raises ValueError for an order without ranks or an impossible `unit`."""
    ranked = order()
    if not isinstance(ranked, RankedOrder) or type(ranked).head is not RankedOrder.head:
        raise ValueError("order has no rank; expected one such as sjf, srpt, priority or mlfq")
    return Aging(ranked, duration("unit", unit))


ENTRY = Entry(
    "The order it wraps, where waiting improves the rank: one unit for every `unit` of time.",
    make,
    {"order": Option("sjf", "order"), "unit": Option(SECOND // 20, "duration")},
)
