"""The clocks of a replay: the wall's, and one that stands still until it is told.

Instants are whole nanoseconds since the clock was made. Never reads the date.
"""

from __future__ import annotations

import time
from typing import Protocol

from sim.request import Nanoseconds


class Clock(Protocol):
    """Tells the time, and waits for a time."""

    def now(self) -> Nanoseconds:
        """The present instant."""

    def sleep_until(self, instant: Nanoseconds) -> None:
        """Return at that instant or, on the wall, a little later; at once if it has passed."""


class WallClock:
    """The monotonic clock. It sleeps for most of a wait and watches the last `spin` ns of it."""

    def __init__(self, spin: Nanoseconds = 200_000) -> None:
        self.spin = spin
        self.zero = time.perf_counter_ns()

    def now(self) -> Nanoseconds:
        """Nanoseconds since the clock was made."""
        return time.perf_counter_ns() - self.zero

    def sleep_until(self, instant: Nanoseconds) -> None:
        """Sleep, then watch: a sleep alone is late by tens of microseconds."""
        while (left := instant - self.now()) > 0:
            if left > self.spin:
                time.sleep((left - self.spin) / 1e9)


class FakeClock:
    """A clock that moves only when somebody waits on it."""

    def __init__(self) -> None:
        self.instant: Nanoseconds = 0

    def now(self) -> Nanoseconds:
        """Where it stands."""
        return self.instant

    def sleep_until(self, instant: Nanoseconds) -> None:
        """It is that time now; never goes back."""
        self.instant = max(self.instant, instant)
