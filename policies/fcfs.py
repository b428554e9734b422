"""First come, first served: the fair answer when all requests are alike, and every engine's default.

A preempted sequence goes back to the front: it came before all who wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from policies.entry import Entry
from sim.policy.base import Order
from sim.request import Nanoseconds, Sequence


class FirstComeFirstServed(Order):
    """A line: join at its end, leave at its front."""

    appends = True

    def __init__(self) -> None:
        self.line: deque[Sequence] = deque()

    def push(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """To the end of the line."""
        self.line.append(seq)

    def push_back(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """To the front of the line."""
        self.line.appendleft(seq)

    def rejoin(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """To the front of the line: whoever was held aside had come to it."""
        self.line.appendleft(seq)

    def head(self, now: Nanoseconds, step: int) -> Sequence | None:
        """The front of the line."""
        return self.line[0]

    def pop(self, seq: Sequence) -> None:
        """Leave the line."""
        if self.line[0] is seq:
            self.line.popleft()
        else:
            self.line.remove(seq)

    def __len__(self) -> int:
        return len(self.line)

    def __iter__(self) -> Iterator[Sequence]:
        return iter(self.line)


def make(seed: int) -> Order:
    """A line; it draws nothing, so the seed does not matter."""
    return FirstComeFirstServed()


ENTRY = Entry("First come, first served.", make)
