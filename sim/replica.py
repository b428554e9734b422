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


class Flight:
    """A batch and how long each of its steps to come lasts."""

    __slots__ = ("batch", "durations")

    def __init__(self, batch: Batch, durations: array[Nanoseconds]) -> None:
        self.batch = batch
        self.durations = durations


class Replica:
    """Runs `scheduler` at `cost`; with `macro` off, every step is an event of its own.

    At depth 1 a plan is made when nothing is left to run, at depth 2 when one step is left: it has just
    started (the tail), and what is planned now follows it.
    """

    def __init__(self, env: Clock, scheduler: Scheduler, cost: StepCost, macro: bool = True) -> None:
        self.env = env
        self.scheduler = scheduler
        self.cost = cost
        self.macro = macro
        self.ahead = scheduler.depth - 1  # steps left to run when the next plan is made
        self.flying: Flight | None = None
        self.following: Flight | None = None
        self.in_tail = False
        self.wake: At | None = None
        self.must_plan = False
        self.planning = False

    def submit(self, request: Request) -> None:
        """A request arrives now."""
        if self.flying is not None and self.scheduler.order.counts_service:
            self.catch_up(self.flying)
        may_change = self.scheduler.submit(request, self.env.now)
        if self.flying is None:
            self.must_plan = True
        elif may_change and not self.must_plan:
            self.plan_at_boundary(self.env.now)
        self.settle()

    def settle(self) -> None:
        """If a plan is due, make it now, once, after every other event of this instant."""
        if not self.must_plan or self.planning:
            return
        if self.env.peek() > self.env.now:
            self.plan()
        else:
            self.planning = True
            At(self.env, 0, Rank.PLANNING, self.plan)

    def plan(self, _: simpy.Event | None = None) -> None:
        """Ask for the next batch, and set it running or behind the step that runs."""
        self.planning = self.must_plan = False
        batch = self.scheduler.plan(self.env.now)
        while batch.preempted and not batch.tokens and self.flying is None:
            batch = self.scheduler.plan(self.env.now)
        if not batch.tokens:
            return
        if self.macro and batch.repeat > 1:
            flight = Flight(batch, self.cost.run(batch, batch.repeat, batch.growth))
        else:
            flight = Flight(batch, array("q", [self.cost.step(batch)]))
        if self.flying is None:
            self.begin(flight)
        else:
            self.following = flight
            batch.start = self.flying.batch.start + self.flying.durations[0]
        if batch.until is not None:
            self.plan_at_boundary(batch.until)
        self.settle()

    def begin(self, flight: Flight) -> None:
        """The first step of a batch starts now."""
        flight.batch.start = self.env.now
        self.flying = flight
        self.await_plan(flight)

    def await_plan(self, flight: Flight) -> None:
        """Wake when the next plan is due: when no more than `ahead` steps are left."""
        first = flight.durations[: len(flight.durations) - self.ahead]
        if first:
            self.wake = At(self.env, flight.batch.start + sum(first) - self.env.now, Rank.COMPLETION, self.reach_plan)
        else:
            self.enter_tail(flight)

    def reach_plan(self, event: simpy.Event) -> None:
        """All steps but those to run ahead have ended, unless the batch was cut since this was scheduled."""
        if event is self.wake and self.flying is not None:
            self.run_to_plan(self.flying)
            self.settle()

    def run_to_plan(self, flight: Flight) -> None:
        """Take the results of all steps but those to run ahead; a plan is due."""
        batch, durations = flight.batch, flight.durations
        ended = len(durations) - self.ahead
        if self.ahead:
            self.scheduler.proceed(batch, batch.done + len(durations) - batch.steps)
        if ended:
            self.scheduler.commit(batch, self.env.now, durations[:ended])
            del durations[:ended]
        if durations:
            self.enter_tail(flight)
        else:
            self.flying = None
            self.must_plan = True

    def enter_tail(self, flight: Flight) -> None:
        """The last step of a batch starts now, and the one after it is to be planned."""
        self.in_tail = self.must_plan = True
        self.wake = At(self.env, flight.durations[0], Rank.COMPLETION, self.end_tail)

    def end_tail(self, event: simpy.Event) -> None:
        """The last step has ended: the batch behind it starts, or a plan is due."""
        assert event is self.wake
        flight, following = self.flying, self.following
        assert flight is not None
        self.flying = self.following = None
        self.in_tail = False
        self.scheduler.commit(flight.batch, self.env.now, flight.durations)
        if following is not None:
            self.begin(following)
        else:
            self.must_plan = True
        self.settle()

    def plan_at_boundary(self, instant: Nanoseconds) -> None:
        """Make the next plan at the first step boundary at or after an instant, if none is due before."""
        flight = self.following if self.in_tail else self.flying
        if flight is None:
            return
        elapsed = instant - flight.batch.start
        boundaries = bisect_left(list(accumulate(flight.durations)), elapsed) + 1 if elapsed > 0 else 0
        kept = boundaries + self.ahead
        if kept < len(flight.durations):
            del flight.durations[kept:]
            if flight is self.flying:
                self.await_plan(flight)

    def catch_up(self, flight: Flight) -> None:
        """Book the steps of the run that have ended by now, for an order that counts service."""
        if self.in_tail:
            return
        batch, boundaries = flight.batch, list(accumulate(flight.durations, initial=0))
        elapsed = self.env.now - batch.start
        ended = bisect_right(boundaries, elapsed) - 1
        if boundaries[ended] == elapsed:
            del flight.durations[ended + self.ahead :]
            self.run_to_plan(flight)
            return
        planned = min(ended + 1 + self.ahead, len(flight.durations))
        if planned > batch.steps - batch.done:
            self.scheduler.proceed(batch, planned - (batch.steps - batch.done))
        if ended:
            self.scheduler.commit(batch, batch.start + boundaries[ended], flight.durations[:ended])
            del flight.durations[:ended]
