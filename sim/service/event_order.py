"""The order of simultaneous events (Rank), and the interface for scheduling one (Agenda).

Implemented by SimPy's virtual clock (`sim.service.replica`) and by the clock of a replay.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Protocol

from sim.request import Nanoseconds


class Rank(IntEnum):
    """The order of events at one instant."""

    COMPLETION = 0
    FAILURE = 1
    RESTART = 2
    CANCELLATION = 3
    TIMEOUT = 4
    ARRIVAL = 5
    PLANNING = 6


COMPLETION, FAILURE, RESTART, CANCELLATION, TIMEOUT, ARRIVAL, PLANNING = Rank


class Agenda(Protocol):
    """A clock with scheduled events; times are integer nanoseconds."""

    @property
    def now(self) -> Nanoseconds:
        """The current instant."""

    def after(self, delay: Nanoseconds, rank: Rank, action: Callable[[object], None]) -> object:
        """Have `action` called in `delay` ns; at one instant by rank, then in the order of the calls of `after`."""
