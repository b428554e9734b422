"""Virtual time: the clock of a run (Clock), and what happens at an instant (At). Only here is simpy imported."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from math import inf
from typing import Any

import simpy

from sim.request import Nanoseconds
from sim.service.event_order import Rank


class Clock(simpy.Environment):
    """Virtual time in whole nanoseconds."""

    @property
    def now(self) -> Nanoseconds:
        """The current instant."""
        return self._now  # type: ignore[return-value]  # every delay is an integer

    def advance(self) -> float:
        """Process the next event; returns when the one after it is due, infinity if there is none.

        As `step`, for events that are all of the kind `At`: they have one callback and do not fail.
        """
        queue = self._queue
        self._now, _, _, event = heappop(queue)
        (act,) = event.callbacks
        event.callbacks = None  # type: ignore[assignment]  # processed, as SimPy marks it
        act(event)
        return queue[0][0] if queue else inf

    def after(self, delay: Nanoseconds, rank: Rank, action: Callable[[object], None]) -> At:
        """Have `action` called in `delay` ns, in the order of the ranks (the priority of SimPy's events)."""
        return At(self, delay, rank, action)


class At(simpy.Event):
    """Calls `action` at an instant, in the order of the ranks, and within one by `place`."""

    def __init__(
        self, env: Clock, delay: Nanoseconds, rank: Rank, action: Callable[[object], None], place: int = 0
    ) -> None:
        self.env = env
        self.callbacks = [action]
        self._ok = True
        self._value = None
        entry: Any = (env._now + delay, (rank << 32) + place, next(env._eid), self)  # SimPy names two priorities only
        heappush(env._queue, entry)
