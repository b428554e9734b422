"""A cap on waiting: who has waited longer than `max_wait` goes first, the oldest first.

Makes any order free of starvation: a request past the cap waits for nobody but older ones that are past it too.
What a preempted request waited and ran before counts: the wait is the time since its arrival. Too small a cap is
first come, first served, and so is any cap under a lasting overload: then all wait longer. It overrides a limit that
lies inside it; put limits outside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappop, heappush

from policies.deadlines import duration
from policies.entry import Entry, Option
from policies.wrapper import Wrapper, sooner
from sim.policy.base import Order
from sim.request import SECOND, Nanoseconds, Sequence


class MaxWait(Wrapper):
    """Overdue first, then the order it wraps."""

    def __init__(self, inner: Order, max_wait: Nanoseconds) -> None:
        """Raises ValueError for a negative `max_wait`."""
        if max_wait < 0:
            raise ValueError(f"max_wait is {max_wait} ns; expected 0 or more")
        super().__init__(inner)
        self.counts_service |= inner.preempts
        self.running: dict[int, Sequence] = {}  # if it preempts
        self.max_wait = max_wait
        self.oldest: list[tuple[Nanoseconds, int, Sequence]] = []  # heap; some may have left the queue
        self.waiting: dict[int, Sequence] = {}

    def push(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Join; the wait counts from the arrival."""
        super().push(seq, now, step)
        self.note(seq)

    def push_back(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Return; what it waited before still counts."""
        self.running.pop(seq.index, None)
        super().push_back(seq, now, step)
        self.note(seq)

    def rejoin(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Back; what it waited before still counts."""
        super().rejoin(seq, now, step)
        self.note(seq)

    def note(self, seq: Sequence) -> None:
        """Enter the sequence among those who wait."""
        self.waiting[seq.index] = seq
        heappush(self.oldest, (seq.request.arrival, seq.index, seq))

    def pop(self, seq: Sequence) -> None:
        """Leave."""
        super().pop(seq)
        del self.waiting[seq.index]

    def head(self, now: Nanoseconds, step: int) -> Sequence | None:
        """The oldest of the overdue, or the head of the order it wraps."""
        arrival, seq = self.longest_wait()
        return seq if now - arrival > self.max_wait else super().head(now, step)

    def longest_wait(self) -> tuple[Nanoseconds, Sequence]:
        """When the one who waits longest arrived, and who it is."""
        while self.oldest[0][1] not in self.waiting:
            heappop(self.oldest)
        arrival, _, seq = self.oldest[0]
        return arrival, seq

    def displaced(self, head: Sequence, running: Iterable[Sequence], now: Nanoseconds, step: int) -> Sequence | None:
        """Whom the wrapped order names, but nobody who is overdue."""
        return super().displaced(head, (seq for seq in running if not self.overdue(seq, now)), now, step)

    def overdue(self, seq: Sequence, now: Nanoseconds) -> bool:
        """Whether it arrived longer ago than the cap."""
        return now - seq.request.arrival > self.max_wait

    def next_change(self, now: Nanoseconds, step: int) -> tuple[Nanoseconds | None, int | None]:
        """When the oldest, or a running one, becomes overdue, or the order it wraps may change its answer."""
        arrival, _ = self.longest_wait()
        until, steps = super().next_change(now, step)
        for seq in self.running.values():
            if not self.overdue(seq, now):
                until = sooner(until, seq.request.arrival + self.max_wait + 1)
        if now - arrival > self.max_wait:
            return (until, steps) if self.preempts else (None, None)
        return sooner(until, arrival + self.max_wait + 1), steps

    def admitted(self, seq: Sequence, step: int) -> None:
        """It runs."""
        if self.preempts:
            self.running[seq.index] = seq
        super().admitted(seq, step)

    def left(self, seq: Sequence, step: int) -> None:
        """It is gone."""
        self.running.pop(seq.index, None)
        super().left(seq, step)


def make(seed: int, order: Callable[[], Order], max_wait: object) -> Order:
    """The cap on the order asked for. Raises ValueError for a cap that is no time."""
    return MaxWait(order(), duration("max_wait", max_wait))


ENTRY = Entry(
    "Requests that have waited too long first, the oldest first; then the order it wraps.",
    make,
    {"order": Option("sjf", "order"), "max_wait": Option(30 * SECOND, "duration")},
    over_preemptive=True,
)
