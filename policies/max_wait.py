"""A cap on waiting: requests that have waited longer than `max_wait` go first, the oldest first.

Makes any order free of starvation: a request past the cap waits only for older ones that are past it too. The wait is
the time since arrival, so a preempted request's earlier waiting and running count. A cap that is too small gives
first come, first served, and so does any cap under a lasting overload, as all requests then wait longer. It overrides
a limit inside it; put limits outside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappop, heappush

from policies.base.entry import Entry, Option
from policies.base.option_values import duration
from sim.policy.base import Order
from sim.policy.wrapper import Wrapper, sooner
from sim.request import SECOND, Nanoseconds
from sim.sequence import Sequence


class MaxWait(Wrapper):
    """Overdue sequences first, then the wrapped order."""

    def __init__(self, inner: Order, max_wait: Nanoseconds) -> None:
        """Raises ValueError for a negative `max_wait`."""
        if max_wait < 0:
            raise ValueError(f"max_wait is {max_wait} ns; expected 0 or more")
        super().__init__(inner)
        if inner.preempts:
            self.listeners = (self,)
        self.running: dict[int, Sequence] = {}  # if it preempts
        self.max_wait = max_wait
        self.oldest: list[tuple[Nanoseconds, int, Sequence]] = []  # heap by arrival; some have left
        self.waiting: dict[int, Sequence] = {}

    def push(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Join; the wait counts from the arrival."""
        super().push(seq, now, step)
        self.note(seq)

    def push_back(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Return; the wait still counts from the arrival."""
        self.running.pop(seq.index, None)
        super().push_back(seq, now, step)
        self.note(seq)

    def rejoin(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Rejoin; the wait still counts from the arrival."""
        super().rejoin(seq, now, step)
        self.note(seq)

    def note(self, seq: Sequence) -> None:
        """Record the sequence as waiting."""
        self.waiting[seq.index] = seq
        heappush(self.oldest, (seq.request.arrival, seq.index, seq))

    def pop(self, seq: Sequence) -> None:
        """Leave."""
        super().pop(seq)
        del self.waiting[seq.index]

    def head(self, now: Nanoseconds, step: int) -> Sequence | None:
        """The oldest overdue sequence, or the head of the wrapped order."""
        arrival, seq = self.longest_wait()
        return seq if now - arrival > self.max_wait else super().head(now, step)

    def longest_wait(self) -> tuple[Nanoseconds, Sequence]:
        """The earliest arrival among the waiting sequences, and its sequence."""
        while self.oldest[0][1] not in self.waiting:
            heappop(self.oldest)
        arrival, _, seq = self.oldest[0]
        return arrival, seq

    def displaced(self, head: Sequence, running: Iterable[Sequence], now: Nanoseconds, step: int) -> Sequence | None:
        """The choice of the wrapped order among the running sequences that are not overdue."""
        return super().displaced(head, (seq for seq in running if not self.overdue(seq, now)), now, step)

    def overdue(self, seq: Sequence, now: Nanoseconds) -> bool:
        """Whether the sequence arrived longer ago than `max_wait`."""
        return now - seq.request.arrival > self.max_wait

    def next_change(self, now: Nanoseconds, step: int) -> tuple[Nanoseconds | None, int | None]:
        """When the oldest, or a running one, becomes overdue, or the head of the wrapped order may change."""
        arrival, _ = self.longest_wait()
        until, steps = super().next_change(now, step)
        for seq in self.running.values():
            if not self.overdue(seq, now):
                until = sooner(until, seq.request.arrival + self.max_wait + 1)
        if now - arrival > self.max_wait:
            return (until, steps) if self.preempts else (None, None)
        return sooner(until, arrival + self.max_wait + 1), steps

    def admitted(self, seq: Sequence, step: int) -> None:
        """Noted as running where the wrapped order preempts; forwarded."""
        if self.preempts:
            self.running[seq.index] = seq
        super().admitted(seq, step)

    def left(self, seq: Sequence, step: int) -> None:
        """No longer running; forwarded."""
        self.running.pop(seq.index, None)
        super().left(seq, step)


def make(seed: int, order: Callable[[], Order], max_wait: object) -> Order:
    """The cap over the order given. Raises ValueError for a `max_wait` that is no duration."""
    return MaxWait(order(), duration("max_wait", max_wait))


ENTRY = Entry(
    "Requests that have waited too long first, the oldest first; then the order it wraps.",
    make,
    {"order": Option("sjf", "order"), "max_wait": Option(30 * SECOND, "duration")},
    wraps_preemptive=True,
)
