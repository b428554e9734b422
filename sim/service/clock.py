"""Virtual time on SimPy: the calendar of a simulation (Clock), and an event in it (At)."""

from __future__ import annotations

from collections.abc import Callable

import simpy

from sim.request import Nanoseconds
from sim.service.event_order import Rank


class Clock(simpy.Environment):
    """Virtual time in whole nanoseconds."""

    @property
    def now(self) -> Nanoseconds:
        """The current instant."""
        return self._now  # type: ignore[return-value]  # every delay is an integer

    def after(self, delay: Nanoseconds, rank: Rank, action: Callable[[object], None]) -> At:
        """Have `action` called in `delay` ns, in the order of the ranks (the priority of SimPy's events)."""
        return At(self, delay, rank, action)


class At(simpy.Event):
    """Calls `action` at an instant, in the order of the ranks, and within one by `place`."""

    def __init__(
        self, env: Clock, delay: Nanoseconds, rank: Rank, action: Callable[[At], None], place: int = 0
    ) -> None:
        self.env = env
        self.callbacks = [action]
        self._ok = True
        self._value = None
        env.schedule(self, (rank << 32) + place, delay)  # type: ignore[arg-type]  # SimPy names only two priorities
