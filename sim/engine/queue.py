"""The waiting sequences: the order of the policy, and the pages that each of them needs."""

from __future__ import annotations

from sim.policy.base import Order
from sim.request import Nanoseconds
from sim.sequence import Sequence


class Waiting:
    """An order, the number of sequences in it, and the smallest need of any of them."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.count = 0
        self.needs: dict[int, int] = {}  # pages, by the index of a sequence
        self.alike: dict[int, int] = {}  # how many sequences need so many pages
        self.smallest: int | None = None  # None: to be found again

    def push(self, seq: Sequence, needs: int, now: Nanoseconds, step: int) -> None:
        """Add a sequence that needs `needs` pages."""
        self.order.push(seq, now, step)
        self.note(seq, needs)

    def push_back(self, seq: Sequence, needs: int, now: Nanoseconds, step: int) -> None:
        """Add a preempted sequence that needs `needs` pages."""
        self.order.push_back(seq, now, step)
        self.note(seq, needs)

    def note(self, seq: Sequence, needs: int) -> None:
        """Count the need of a sequence."""
        self.count += 1
        self.needs[seq.index] = needs
        self.alike[needs] = self.alike.get(needs, 0) + 1
        if self.smallest is not None and needs < self.smallest:
            self.smallest = needs

    def pop(self, seq: Sequence) -> int:
        """Remove a sequence that is admitted or has ended; returns the pages it needs."""
        self.order.pop(seq)
        self.count -= 1
        needs = self.needs.pop(seq.index)
        alike = self.alike[needs] - 1
        if alike:
            self.alike[needs] = alike
        else:
            del self.alike[needs]
            self.smallest = None
        return needs

    def smallest_need(self) -> int:
        """The smallest need of any waiting sequence; at least one waits."""
        if self.smallest is None:
            self.smallest = min(self.alike)
        return self.smallest
