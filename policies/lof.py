"""Longest output first: the request with the largest limit on its output goes first.

Long outputs start early, so that an offline batch does not end with a few of them beside empty slots. It needs no
prediction, but reads the limit that the client declared for one; `longest` is the same by predictions. SGLang's lof.
With `by_priority` the more urgent go first, within a priority the longest.
"""

from __future__ import annotations

from policies.base.entry import Entry, Option
from policies.base.option_values import flag
from policies.base.sorted_queue import SortedQueue
from sim.policy.base import Order
from sim.sequence import Sequence


class LongestOutputFirst(SortedQueue):
    """By the limit on the output, the largest first; within a priority, if that counts."""

    def __init__(self, by_priority: bool = False) -> None:
        super().__init__()
        self.by_priority = by_priority

    def sort(self) -> None:
        """By priority, if that counts, and the limit."""
        self.queue.sort(key=self.rank)

    def rank(self, seq: Sequence) -> tuple[int, int]:
        """The smallest goes first."""
        return self.by_priority and seq.request.priority, seq.request.prompt - seq.target.most


def make(seed: int, by_priority: object) -> Order:
    """The order; `seed` is not used. Raises ValueError for an impossible option."""
    return LongestOutputFirst(flag("by_priority", by_priority))


ENTRY = Entry(
    "The largest declared limit on the output first.",
    make,
    {"by_priority": Option(False)},
    source="SGLang's lof",
)
