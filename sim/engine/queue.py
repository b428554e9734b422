"""The sequences that wait: the policy's order, and beside it the pages that they need.

Knows nothing of slots or budgets.
"""

from __future__ import annotations

from sim.policy.base import Order
from sim.request import Nanoseconds, Sequence


class Waiting:
    """An order, how many are in it, and the smallest need of any of them."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.count = 0
        self.needs: dict[int, int] = {}
        self.smallest: int | None = None  # None: to be found again

    def push(self, seq: Sequence, needs: int, now: Nanoseconds, step: int) -> None:
        """A sequence joins that needs so many pages."""
        self.order.push(seq, now, step)
        self.note(seq, needs)

    def push_back(self, seq: Sequence, needs: int, now: Nanoseconds, step: int) -> None:
        """A preempted sequence returns."""
        self.order.push_back(seq, now, step)
        self.note(seq, needs)

    def note(self, seq: Sequence, needs: int) -> None:
        """Count what a sequence needs."""
        self.count += 1
        seq.needs = needs
        self.needs[needs] = self.needs.get(needs, 0) + 1
        if self.smallest is not None and needs < self.smallest:
            self.smallest = needs

    def pop(self, seq: Sequence) -> None:
        """A sequence leaves, admitted or ended."""
        self.order.pop(seq)
        self.count -= 1
        self.needs[seq.needs] -= 1
        if not self.needs[seq.needs]:
            del self.needs[seq.needs]
            self.smallest = None

    def smallest_need(self) -> int:
        """The fewest pages with which any of those who wait could enter. There is at least one."""
        if self.smallest is None:
            self.smallest = min(self.needs)
        return self.smallest
