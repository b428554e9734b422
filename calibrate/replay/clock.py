"""The clocks of a replay: the wall clock, and one that only moves when it is set.

Instants are whole nanoseconds since the clock was made.
"""

from __future__ import annotations

import time
from typing import Protocol

from sim.request import Nanoseconds


class Clock(Protocol):
    """Gives the time, and waits for an instant."""

    def now(self) -> Nanoseconds:
        """The present instant."""

    def sleep_until(self, instant: Nanoseconds) -> None:
        """Return at that instant or, on the wall clock, a little later; at once if it has passed."""


class WallClock:
    """The monotonic clock. It sleeps for most of a wait and polls during the last `spin` ns of it."""

    def __init__(self, spin: Nanoseconds = 200_000) -> None:
        self.spin = spin
        self.zero = time.perf_counter_ns()

    def now(self) -> Nanoseconds:
        """Nanoseconds since the clock was made."""
        return time.perf_counter_ns() - self.zero

    def sleep_until(self, instant: Nanoseconds) -> None:
        """Sleep, then poll: a sleep alone ends tens of microseconds late."""
        while (left := instant - self.now()) > 0:
            if left > self.spin:
                time.sleep((left - self.spin) / 1e9)


class FakeClock:
    """A clock that moves only by `sleep_until`."""

    def __init__(self) -> None:
        self.instant: Nanoseconds = 0

    def now(self) -> Nanoseconds:
        """The instant that was last set."""
        return self.instant

    def sleep_until(self, instant: Nanoseconds) -> None:
        """Set the clock to that instant; it never goes back."""
        self.instant = max(self.instant, instant)
