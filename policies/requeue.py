"""First come, first served, with a preempted request at the end of the queue.

What it had computed is mostly gone, so nothing is lost by letting others go first, and requests that are displaced by
turns do not hold up the queue; but its wait begins again. The fcfs of SGLang. With `by_priority` the more urgent go
first, within a priority in the order in which they joined the queue.
"""

from __future__ import annotations

from policies.base.entry import Entry, Option
from policies.base.option_values import flag
from policies.base.sorted_queue import SortedQueue
from sim.policy.base import Order


class Requeue(SortedQueue):
    """In the order of joining, or by priority and then so."""

    def __init__(self, by_priority: bool = False) -> None:
        super().__init__()
        self.by_priority = by_priority

    def sort(self) -> None:
        """By priority, if that counts."""
        if self.by_priority:
            self.queue.sort(key=lambda seq: (seq.request.priority, self.joined[seq.index]))


def make(seed: int, by_priority: object) -> Order:
    """The order; `seed` is not used. Raises ValueError for an impossible option."""
    return Requeue(flag("by_priority", by_priority))


ENTRY = Entry(
    "In the order of joining the queue; a preempted request joins again at the end.",
    make,
    {"by_priority": Option(False)},
    source="SGLang's fcfs",
)
