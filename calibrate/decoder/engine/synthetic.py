"""Engines without a model: they run batches by advancing a clock.

`FakeExecutor` takes exactly the cost of each batch: a replay with it has the simulator's log. `SyntheticEngine` has
the interface of a real engine (`calibrate.decoder.engine.protocol`): it refuses what a real one could not compute,
and its steps vary, so the right result of a measurement, fit or validation is known. Imports no torch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence as Several

import numpy as np

from calibrate.decoder.engine.protocol import Outcome, Step
from calibrate.replay.clock import FakeClock
from sim.cost.forms import StepCost
from sim.cost.shape import Shape
from sim.engine.batch import Batch
from sim.request import Nanoseconds
from sim.sequence import Sequence


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

    def collect(self, handle: Nanoseconds) -> None:
        """Set the clock to the end of that batch."""
        self.clock.sleep_until(handle)

    def forget(self, seq: Sequence) -> None:
        """Does nothing."""


class SyntheticEngine:
    """A device whose steps cost what `cost` gives, times a lognormal factor of sigma `noise` drawn from `seed`.

    Raises ValueError for a step that a real engine could not compute: unknown requests, positions skipped or not
    known yet, too few pages, a page that two rows write, copies of pages that do not exist.
    """

    def __init__(
        self,
        cost: StepCost,
        clock: FakeClock,
        pages: int,
        page_size: int,
        *,
        max_model_len: int = 1 << 20,
        host_pages: int = 0,
        noise: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.cost = cost
        self.clock = clock
        self.pages = pages
        self.page_size = page_size
        self.max_model_len = max_model_len
        self.host_pages = host_pages
        self.noise = noise
        self.stream = np.random.default_rng(seed)
        self.prompt: dict[int, int] = {}
        self.known: dict[int, int] = {}
        self.peak: dict[int, int] = {}
        self.free_at: Nanoseconds = 0
        self.flying: deque[int] = deque()
        self.launched = 0

    def begin(self, request: int, prompt: Several[int]) -> None:
        """A request with this prompt; only its length is kept."""
        if len(prompt) >= self.max_model_len:
            raise ValueError(
                f"request {request} has a prompt of {len(prompt)} tokens; expected fewer than {self.max_model_len}"
            )
        if request in self.known:
            raise ValueError(f"request {request} has begun already")
        self.prompt[request] = self.known[request] = len(prompt)
        self.peak[request] = 0

    def launch(self, step: Step) -> tuple[int, Nanoseconds, Nanoseconds, Step]:
        """The step runs behind those launched before; the handle is its number, its duration, its end and itself."""
        if not step.rows:
            raise ValueError("a step without rows")
        for pair in (*step.swap_out, *(pair[::-1] for pair in step.swap_in)):
            if not (0 <= pair[0] < self.pages and 0 <= pair[1] < self.host_pages):
                raise ValueError(f"pages {pair} are copied; expected below {self.pages} and {self.host_pages}")
        shape = self.shape(step)
        lasts = self.cost.step(shape)
        if self.noise:
            lasts = max(1, round(lasts * float(self.stream.lognormal(-(self.noise**2) / 2, self.noise))))
        self.free_at = max(self.free_at, self.clock.now()) + lasts
        self.launched += 1
        self.flying.append(self.launched)
        return self.launched, lasts, self.free_at, step

    def collect(self, handle: tuple[int, Nanoseconds, Nanoseconds, Step]) -> Outcome:
        """Set the clock to the end of the step; every token is 0."""
        number, lasts, end, step = handle
        if self.flying.popleft() != number:
            raise ValueError("collected out of order; expected the order of the launches")
        self.clock.sleep_until(end)
        return Outcome(tuple(0 for row in step.rows if row.yields), lasts, lasts, len(step.rows))

    def end(self, request: int) -> None:
        """Forget a request."""
        for about in (self.prompt, self.known, self.peak):
            del about[request]

    def shape(self, step: Step) -> Shape:
        """The shape of a step from its rows, as the scheduler gives it of its sequences."""
        shape = Shape()
        written: set[int] = set()
        for row in step.rows:
            end = row.start + row.count
            if row.request not in self.known or row.count < 1 or end > self.known[row.request]:
                raise ValueError(f"{row}: nothing is known of these positions")
            if row.yields != (end == self.known[row.request]):
                raise ValueError(f"{row}: yields exactly if it computes the last known position")
            held = row.pages[: -(-end // self.page_size)]
            if len(held) * self.page_size < end or len(set(held)) < len(held):
                raise ValueError(f"{row}: too few pages, or one twice")
            new = set(held[row.start // self.page_size :])
            if new & written or not all(0 <= page < self.pages for page in held):
                raise ValueError(f"{row}: writes into a page that is another row's, or not there")
            written |= new
            if row.count > 1 or row.start < max(self.prompt[row.request], self.peak[row.request]):
                shape.add_chunk(row.start, row.count)
            else:
                shape.decodes += 1
                shape.context += row.start
                shape.longest = max(shape.longest, row.start)
        for row in step.rows:
            self.peak[row.request] = max(self.peak[row.request], row.start + row.count)
            self.known[row.request] += row.yields
        shape.pages = len(
            {page for row in step.rows for page in row.pages[: -(-(row.start + row.count) // self.page_size)]}
        )
        shape.swapped = self.page_size * (len(step.swap_out) + len(step.swap_in))
        return shape
