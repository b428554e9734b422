"""The events of a replay: a heap by instant, rank and order of insertion.

The same total order as the simulator's (`sim.service.event_order`). It reads no clock: its driver sets the time.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

from sim.request import Nanoseconds
from sim.service.event_order import CANCELLATION, TIMEOUT, Rank

Action = Callable[[object], None]


class EventQueue:
    """`now` is the instant of the current event: while an action runs, the time it was due."""

    def __init__(self) -> None:
        self.now: Nanoseconds = 0
        self.heap: list[tuple[Nanoseconds, Rank, int, Action]] = []
        self.entered = 0

    def after(self, delay: Nanoseconds, rank: Rank, action: Action) -> int:
        """Schedule `action` after a delay, ns; returns the number of the entry."""
        self.entered += 1
        heappush(self.heap, (self.now + delay, rank, self.entered, action))
        return self.entered

    def run(self, before: Nanoseconds) -> None:
        """Run, in order, all actions due before an instant, each at its own time."""
        while self.heap and self.heap[0][0] < before:
            self.now, _, entry, action = heappop(self.heap)
            action(entry)

    def next(self) -> Nanoseconds | None:
        """When the next entry is due, if there is one."""
        return self.heap[0][0] if self.heap else None

    def drop_limits(self) -> None:
        """Remove time-outs and cancellations from the front: their requests have all ended."""
        while self.heap and self.heap[0][1] in (CANCELLATION, TIMEOUT):
            heappop(self.heap)
