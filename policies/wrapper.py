"""What orders that wrap another one share: whatever they do not change themselves is the wrapped order's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sim.policy import Order
from sim.request import Nanoseconds, Sequence


class Wrapper(Order):
    """An order that changes something of `inner`."""

    def __init__(self, inner: Order) -> None:
        self.inner = inner
        self.counts_service = inner.counts_service

    def push(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Join the wrapped order."""
        self.inner.push(seq, now, step)

    def push_back(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Return to it."""
        self.inner.push_back(seq, now, step)

    def head(self, now: Nanoseconds, step: int) -> Sequence | None:
        """Its head."""
        return self.inner.head(now, step)

    def pop(self, seq: Sequence) -> None:
        """Leave it."""
        self.inner.pop(seq)

    def refusal(self, seq: Sequence, now: Nanoseconds) -> str:
        """Why it would turn a newcomer away."""
        return self.inner.refusal(seq, now)

    def displaced(self, head: Sequence, running: Iterable[Sequence], now: Nanoseconds, step: int) -> Sequence | None:
        """Whom it names."""
        return self.inner.displaced(head, running, now, step)

    def __len__(self) -> int:
        return len(self.inner)

    def __iter__(self) -> Iterator[Sequence]:
        return iter(self.inner)

    def next_change(self, now: Nanoseconds, step: int) -> tuple[Nanoseconds | None, int | None]:
        """When its head may change."""
        return self.inner.next_change(now, step)

    def admitted(self, seq: Sequence, step: int) -> None:
        """It hears of it."""
        self.inner.admitted(seq, step)

    def token(self, seq: Sequence, step: int) -> None:
        """It hears of it."""
        self.inner.token(seq, step)

    def decoding(self, seq: Sequence, step: int) -> None:
        """It hears of it."""
        self.inner.decoding(seq, step)

    def paused(self, seq: Sequence, step: int) -> None:
        """It hears of it."""
        self.inner.paused(seq, step)

    def left(self, seq: Sequence, step: int) -> None:
        """It hears of it."""
        self.inner.left(seq, step)


def sooner(one: int | None, other: int | None) -> int | None:
    """The smaller of two, of which None is never."""
    if one is None or other is None:
        return one if other is None else other
    return min(one, other)
