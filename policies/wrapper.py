"""What orders that wrap another one share: whatever they do not change themselves is the wrapped order's."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator

from sim.policy.base import Order
from sim.request import Nanoseconds, Sequence


class Forwarding(Order):
    """An order over one or several others, each sequence in one of them, which is told everything of it."""

    @abstractmethod
    def inner_of(self, seq: Sequence) -> Order:
        """The wrapped order that this sequence belongs to."""

    def push(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Forwarded."""
        self.inner_of(seq).push(seq, now, step)

    def push_back(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Forwarded."""
        self.inner_of(seq).push_back(seq, now, step)

    def rejoin(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Forwarded."""
        self.inner_of(seq).rejoin(seq, now, step)

    def pop(self, seq: Sequence) -> None:
        """Forwarded."""
        self.inner_of(seq).pop(seq)

    def refusal(self, seq: Sequence, now: Nanoseconds) -> str:
        """Forwarded."""
        return self.inner_of(seq).refusal(seq, now)

    def admitted(self, seq: Sequence, step: int) -> None:
        """Forwarded."""
        self.inner_of(seq).admitted(seq, step)

    def token(self, seq: Sequence, step: int) -> None:
        """Forwarded."""
        self.inner_of(seq).token(seq, step)

    def decoding(self, seq: Sequence, step: int) -> None:
        """Forwarded."""
        self.inner_of(seq).decoding(seq, step)

    def paused(self, seq: Sequence, step: int) -> None:
        """Forwarded."""
        self.inner_of(seq).paused(seq, step)

    def left(self, seq: Sequence, step: int) -> None:
        """Forwarded."""
        self.inner_of(seq).left(seq, step)


class Wrapper(Forwarding):
    """An order that changes something of `inner`; one that may change who goes first says so in `reorders`."""

    reorders = True

    def __init__(self, inner: Order) -> None:
        self.inner = inner
        self.appends = inner.appends and not self.reorders
        self.by_urgency = inner.by_urgency and not self.reorders
        self.preempts = inner.preempts
        self.counts_service = inner.counts_service

    def inner_of(self, seq: Sequence) -> Order:
        """The only one there is."""
        return self.inner

    def head(self, now: Nanoseconds, step: int) -> Sequence | None:
        """Forwarded."""
        return self.inner.head(now, step)

    def displaced(self, head: Sequence, running: Iterable[Sequence], now: Nanoseconds, step: int) -> Sequence | None:
        """Forwarded."""
        return self.inner.displaced(head, running, now, step)

    def __len__(self) -> int:
        return len(self.inner)

    def __iter__(self) -> Iterator[Sequence]:
        return iter(self.inner)

    def next_change(self, now: Nanoseconds, step: int) -> tuple[Nanoseconds | None, int | None]:
        """Forwarded."""
        return self.inner.next_change(now, step)


def sooner(one: int | None, other: int | None) -> int | None:
    """The smaller of two, of which None is never."""
    if one is None or other is None:
        return one if other is None else other
    return min(one, other)
