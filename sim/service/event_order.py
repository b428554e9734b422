"""What happens at one instant, in which order, and the seam through which something is put off.

Two clocks fill the seam: SimPy's virtual one (`sim.service.replica`), and whatever clock a replay runs on. Imports
neither.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Protocol

from sim.request import Nanoseconds


class Rank(IntEnum):
    """The order of what happens at one instant."""

    COMPLETION = 0
    FAILURE = 1
    RESTART = 2
    CANCELLATION = 3
    TIMEOUT = 4
    ARRIVAL = 5
    PLANNING = 6


COMPLETION, FAILURE, RESTART, CANCELLATION, TIMEOUT, ARRIVAL, PLANNING = Rank


class Agenda(Protocol):
    """A clock, and what is to happen on it."""

    @property
    def now(self) -> Nanoseconds:
        """The current instant."""

    def after(self, delay: Nanoseconds, rank: Rank, action: Callable[[object], None]) -> object:
        """Have `action` called so long from now, in the order of the ranks and then of the calls of `after`."""
