"""First come, first served: fair when all requests are alike, and the default of every engine.

A preempted sequence returns to the front of the queue, as it arrived before all waiting ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from policies.base.entry import Entry
from sim.policy.base import Order
from sim.policy.fixed_rank import FixedRank
from sim.request import Nanoseconds
from sim.sequence import Sequence


class FirstComeFirstServed(Order):
    """A first-in, first-out queue."""

    appends = True

    def __init__(self) -> None:
        self.queue: deque[Sequence] = deque()

    def push(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Append to the queue."""
        self.queue.append(seq)

    def push_back(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Return to the front of the queue."""
        self.queue.appendleft(seq)

    def rejoin(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Return to the front of the queue: a sequence that was held back had reached it."""
        self.queue.appendleft(seq)

    def head(self, now: Nanoseconds, step: int) -> Sequence | None:
        """The front of the queue."""
        return self.queue[0]

    def pop(self, seq: Sequence) -> None:
        """Leave the queue."""
        if self.queue[0] is seq:
            self.queue.popleft()
        else:
            self.queue.remove(seq)

    def fixed_rank(self) -> FixedRank:
        """By arrival."""
        return FixedRank("arrival")

    def __len__(self) -> int:
        return len(self.queue)

    def __iter__(self) -> Iterator[Sequence]:
        return iter(self.queue)


def make(seed: int) -> Order:
    """First come, first served; `seed` is not used."""
    return FirstComeFirstServed()


ENTRY = Entry("First come, first served.", make)
