"""Base classes of orders that wrap other orders: every hook that a subclass does not override is forwarded."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator

from sim.policy.base import Order
from sim.policy.listener import Listener
from sim.request import Nanoseconds
from sim.sequence import Sequence


class Forwarding(Order, Listener):
    """An order over one or several others. Each sequence is in one of them, to which its hooks are forwarded."""

    @abstractmethod
    def inner_of(self, seq: Sequence) -> Order:
        """The wrapped order that holds this sequence."""

    @abstractmethod
    def inners(self) -> Iterable[Order]:
        """All wrapped orders."""

    def arrange(self, now: Nanoseconds, step: int) -> None:
        """Forwarded to all wrapped orders."""
        for order in self.inners():
            order.arrange(now, step)

    def processed(self, tokens: int) -> None:
        """Forwarded to the listeners of all wrapped orders."""
        for order in self.inners():
            for listener in order.listeners:
                listener.processed(tokens)

    def push(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Forwarded to the wrapped order."""
        self.inner_of(seq).push(seq, now, step)

    def push_back(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Forwarded to the wrapped order."""
        self.inner_of(seq).push_back(seq, now, step)

    def rejoin(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Forwarded to the wrapped order."""
        self.inner_of(seq).rejoin(seq, now, step)

    def pop(self, seq: Sequence) -> None:
        """Forwarded to the wrapped order."""
        self.inner_of(seq).pop(seq)

    def refusal(self, seq: Sequence, now: Nanoseconds) -> str:
        """Forwarded to the wrapped order."""
        return self.inner_of(seq).refusal(seq, now)

    def chunk_limit(self, seq: Sequence, budget: int, page_size: int) -> int | None:
        """Forwarded to the wrapped order."""
        return self.inner_of(seq).chunk_limit(seq, budget, page_size)

    def admitted(self, seq: Sequence, step: int) -> None:
        """Forwarded to the listeners of the wrapped order."""
        for listener in self.inner_of(seq).listeners:
            listener.admitted(seq, step)

    def token(self, seq: Sequence, step: int) -> None:
        """Forwarded to the listeners of the wrapped order."""
        for listener in self.inner_of(seq).listeners:
            listener.token(seq, step)

    def decoding(self, seq: Sequence, step: int) -> None:
        """Forwarded to the listeners of the wrapped order."""
        for listener in self.inner_of(seq).listeners:
            listener.decoding(seq, step)

    def paused(self, seq: Sequence, step: int) -> None:
        """Forwarded to the listeners of the wrapped order."""
        for listener in self.inner_of(seq).listeners:
            listener.paused(seq, step)

    def left(self, seq: Sequence, step: int) -> None:
        """Forwarded to the listeners of the wrapped order."""
        for listener in self.inner_of(seq).listeners:
            listener.left(seq, step)


class Wrapper(Forwarding):
    """An order over one other, `inner`. One that watches service registers itself in place of the listeners of that.

    reorders  the wrapper may change which sequence goes first; then `appends` and `by_urgency` of `inner` do not hold
    """

    reorders = True

    def __init__(self, inner: Order) -> None:
        self.inner = inner
        self.appends = inner.appends and not self.reorders
        self.by_urgency = inner.by_urgency and not self.reorders
        self.preempts = inner.preempts
        self.cuts_one = inner.cuts_one
        self.listeners = inner.listeners

    @property
    def looks_up(self) -> bool:  # type: ignore[override]  # of its latest `arrange`
        """Whether the wrapped order has looked every waiting sequence up."""
        return self.inner.looks_up

    def inner_of(self, seq: Sequence) -> Order:
        """The one wrapped order."""
        return self.inner

    def inners(self) -> Iterable[Order]:
        """The one wrapped order."""
        return (self.inner,)

    def head(self, now: Nanoseconds, step: int) -> Sequence | None:
        """Forwarded to the wrapped order."""
        return self.inner.head(now, step)

    def displaced(self, head: Sequence, running: Iterable[Sequence], now: Nanoseconds, step: int) -> Sequence | None:
        """Forwarded to the wrapped order."""
        return self.inner.displaced(head, running, now, step)

    def __len__(self) -> int:
        return len(self.inner)

    def __iter__(self) -> Iterator[Sequence]:
        return iter(self.inner)

    def next_change(self, now: Nanoseconds, step: int) -> tuple[Nanoseconds | None, int | None]:
        """Forwarded to the wrapped order."""
        return self.inner.next_change(now, step)


def sooner(one: int | None, other: int | None) -> int | None:
    """The smaller of two instants or step counts; None means never."""
    if one is None or other is None:
        return one if other is None else other
    return min(one, other)
