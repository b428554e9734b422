"""Engines that are none: they run batches by advancing a clock.

`FakeExecutor` takes exactly the cost of each batch, and makes a replay the simulator's twin. Knows no torch.
"""

from __future__ import annotations

from calibrate.clock import FakeClock
from sim.batch import Batch
from sim.cost import StepCost
from sim.request import Nanoseconds, Sequence


class FakeExecutor:
    """Runs each batch for its `cost` on a fake clock, one after the other."""

    def __init__(self, cost: StepCost, clock: FakeClock) -> None:
        self.cost = cost
        self.clock = clock
        self.free_at: Nanoseconds = 0

    def launch(self, batch: Batch) -> Nanoseconds:
        """The batch starts when the one before it has ended; returns when it will have ended itself."""
        self.free_at = max(self.free_at, self.clock.now()) + self.cost.step(batch)
        return self.free_at

    def collect(self, handle: object) -> None:
        """It is the end of that batch now."""
        assert isinstance(handle, int)
        self.clock.sleep_until(handle)

    def forget(self, seq: Sequence) -> None:
        """Nothing was kept of it."""
