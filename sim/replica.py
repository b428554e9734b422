"""One scheduler on virtual time: plan, wait for what the batch costs, commit.

A decode batch that may repeat is scheduled to its natural end as one event. What could change it earlier
cuts it at the first step boundary at or after that instant: an earlier wake-up is scheduled, and the old
one passes unheard because it is no longer the batch's end. Knows nothing of arrivals or of other replicas.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from enum import IntEnum
from itertools import accumulate

import simpy

from sim.batch import Batch
from sim.cost import StepCost
from sim.request import Nanoseconds, Request
from sim.scheduler import Scheduler


class Rank(IntEnum):
    """The order of what happens at one instant; SimPy's event priority."""

    COMPLETION = 0
    ARRIVAL = 3
    PLANNING = 4


class Clock(simpy.Environment):
    """Virtual time in whole nanoseconds."""

    @property
    def now(self) -> Nanoseconds:
        """The current instant."""
        return self._now  # type: ignore[return-value]  # every delay is an integer


class At(simpy.Event):
    """Calls `action` at an instant, in the order of the ranks."""

    def __init__(self, env: Clock, delay: Nanoseconds, rank: Rank, action: Callable[[simpy.Event], None]) -> None:
        self.env = env
        self.callbacks = [action]
        self._ok = True
        self._value = None
        env.schedule(self, rank, delay)  # type: ignore[arg-type]  # SimPy names only two of its priorities


class Replica:
    """Runs `scheduler` at `cost`; with `macro` off, every step is an event of its own."""

    def __init__(self, env: Clock, scheduler: Scheduler, cost: StepCost, macro: bool = True) -> None:
        self.env = env
        self.scheduler = scheduler
        self.cost = cost
        self.macro = macro
        self.batch: Batch | None = None
        self.durations: array[Nanoseconds] = array("q")
        self.end: At | None = None
        self.planning = False

    def submit(self, request: Request) -> None:
        """A request arrives now."""
        if self.batch is not None and self.scheduler.order.counts_service:
            self.catch_up(self.batch)
        may_change = self.scheduler.submit(request, self.env.now)
        if self.batch is None:
            self.plan_after_all_else()
        elif may_change and len(self.durations) > 1:
            self.cut(self.batch, self.env.now)

    def plan_after_all_else(self) -> None:
        """Plan now, once, after every other event of this instant."""
        if self.planning:
            return
        if self.env.peek() > self.env.now:
            self.plan()
        else:
            self.planning = True
            At(self.env, 0, Rank.PLANNING, self.plan)

    def plan(self, _: simpy.Event | None = None) -> None:
        """Ask for the next batch and set it running."""
        self.planning = False
        batch = self.scheduler.plan(self.env.now)
        if not batch.tokens:
            return
        self.batch = batch
        if self.macro and batch.repeat > 1:
            self.durations = self.cost.run(batch, batch.repeat, batch.growth)
        else:
            self.durations = array("q", [self.cost.step(batch)])
        self.wake(sum(self.durations))
        if batch.until is not None and len(self.durations) > 1:
            self.cut(batch, batch.until)

    def catch_up(self, batch: Batch) -> None:
        """Book the steps of the run that have ended by now, for an order that counts service."""
        ends = list(accumulate(self.durations))
        elapsed = self.env.now - batch.start
        done = bisect_right(ends, elapsed)
        if not done:
            return
        if ends[done - 1] == elapsed:
            del self.durations[done:]
            self.finish(batch)
        else:
            self.scheduler.commit_part(batch, batch.start + ends[done - 1], self.durations[:done])
            del self.durations[:done]

    def cut(self, batch: Batch, instant: Nanoseconds) -> None:
        """End the run at the first step boundary at or after an instant."""
        ends = list(accumulate(self.durations))
        kept = bisect_left(ends, instant - batch.start) + 1
        if kept < len(ends):
            del self.durations[kept:]
            self.wake(batch.start + ends[kept - 1] - self.env.now)

    def wake(self, delay: Nanoseconds) -> None:
        """The batch ends after `delay`; an end scheduled before no longer counts."""
        self.end = At(self.env, delay, Rank.COMPLETION, self.complete)

    def complete(self, end: simpy.Event) -> None:
        """The batch has run: take its results and plan again."""
        if end is self.end and self.batch is not None:
            self.finish(self.batch)
            self.plan_after_all_else()

    def finish(self, batch: Batch) -> None:
        """Take the batch's results."""
        self.batch = self.end = None
        self.scheduler.commit(batch, self.env.now, self.durations)
