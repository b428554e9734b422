"""The scheduler on any clock: submit what is due, plan, launch, collect, commit.

    submit what is due; batch = scheduler.plan(now); handle = executor.launch(batch)
    executor.collect(handle); scheduler.commit(batch, now)

One loop for the synchronous engine (one step in flight) and for asynchronous scheduling (two). The clock is read once
a step, when its results are there: that instant ends the step and starts the next, so host time between two steps is
part of the second, as in the cost model. What came due while a step ran is submitted when the step has ended, before
the commit and each at its own due time: so late processing is not recorded as a late request.

With an executor that advances a fake clock by the cost of each batch the log is the simulator's, byte for byte.
Imports no SimPy.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any, Protocol

from calibrate.replay.clock import Clock
from calibrate.replay.event_queue import EventQueue
from calibrate.replay.host_timing import HostTiming
from sim.engine.batch import Batch
from sim.engine.scheduler import Scheduler
from sim.log.events import EventLog, Kind
from sim.request import Nanoseconds, Request
from sim.sequence import Sequence
from sim.service.clients import Clients, set_limits
from sim.service.event_order import ARRIVAL


class Executor(Protocol):
    """Runs batches, in the order they are launched."""

    def launch(self, batch: Batch) -> object:
        """Run a batch behind those launched before, and return at once; the result is for `collect`."""

    def collect(self, handle: Any) -> object:
        """Wait until a launched batch has run; the oldest first."""

    def forget(self, seq: Sequence) -> None:
        """A sequence has ended and is in no batch to come."""


class Driver:
    """Runs one engine from the first request to the end of the last; time begins with `run`.

    `timing` has the host time of its own work. `progress` is called after each step with the number of ended
    requests.
    """

    def __init__(
        self,
        clients: Clients,
        scheduler: Scheduler,
        executor: Executor,
        clock: Clock,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self.clients = clients
        self.scheduler = scheduler
        self.executor = executor
        self.clock = clock
        self.progress = progress
        self.agenda = EventQueue()
        self.timing = HostTiming()
        self.flying: deque[tuple[Batch, object]] = deque()
        self.must_plan = False
        self.wake = 0
        self.zero: Nanoseconds = 0
        self.instant: Nanoseconds = 0

    def run(self) -> EventLog:
        """Serve every request; returns the log, after `scheduler.check`."""
        self.zero = self.clock.now()
        self.clients.start(self.agenda, self.send)
        self.instant = self.now()
        while True:
            self.catch_up(self.instant + 1)
            if self.must_plan:
                self.plan()
            elif self.flying:
                self.collect()
            elif not self.wait():
                break
        self.scheduler.check()
        return self.scheduler.log

    def now(self) -> Nanoseconds:
        """Nanoseconds since the run began."""
        return self.clock.now() - self.zero

    def catch_up(self, before: Nanoseconds) -> None:
        """Run all events due before an instant, each at its own time."""
        self.agenda.run(before)
        self.agenda.now = self.instant

    def wait(self) -> bool:
        """Sleep until the next event is due; False if there is none."""
        if not self.scheduler.busy:
            self.agenda.drop_limits()
        due = self.agenda.next()
        if due is None:
            return False
        self.clock.sleep_until(self.zero + due)
        self.instant = self.now()
        self.timing.woke(self.instant - due)
        return True

    def plan(self) -> None:
        """Plan the next batch and launch it, behind the step that runs if there is one."""
        began = perf_counter_ns()
        self.must_plan = False
        batch = self.scheduler.plan(self.instant)
        while batch.preempted and not batch.tokens and not self.flying:
            batch = self.scheduler.plan(self.instant)
        self.tell()
        planned = perf_counter_ns()
        if not batch.tokens:
            if not self.flying:
                self.await_order()
            return
        self.wake = 0
        self.flying.append((batch, self.executor.launch(batch)))
        self.must_plan = len(self.flying) < self.scheduler.config.depth
        self.timing.planned(planned - began, perf_counter_ns() - planned)

    def collect(self) -> None:
        """Wait for the oldest step in flight and commit it; the one behind it starts."""
        batch, handle = self.flying.popleft()
        self.executor.collect(handle)
        ended = self.now()
        began = perf_counter_ns()
        self.catch_up(ended)
        self.instant = self.agenda.now = ended
        self.scheduler.commit(batch, ended)
        self.tell()
        if self.flying:
            self.flying[0][0].row.begin(ended)
        self.must_plan = True
        self.timing.committed(perf_counter_ns() - began)
        if self.progress is not None:
            self.progress(self.scheduler.log.ended)

    def await_order(self) -> None:
        """With nothing running, plan again when the order will admit a waiting request without another event."""
        until = self.scheduler.order_changes_at(self.instant)
        if until is not None:
            self.wake = self.agenda.after(until - self.instant, ARRIVAL, self.try_again)

    def try_again(self, entry: object) -> None:
        """Plan, unless a step runs by now or the wake-up is stale."""
        if entry == self.wake and not self.flying:
            self.must_plan = True

    def send(self, request: Request) -> bool:
        """Submit a request at its own time; whether it was accepted."""
        patience = self.clients.patience(request)
        if patience is not None and patience <= 0:
            self.scheduler.discard(request, self.agenda.now)
            return False
        seq = self.scheduler.submit(request, self.agenda.now)
        self.timing.received(self.now() - self.agenda.now)
        if not self.flying:
            self.must_plan = True
        if seq is None:
            return False
        set_limits(self.agenda, seq, patience, self.abort)
        return True

    def abort(self, seq: Sequence, kind: Kind) -> None:
        """End a request that its client cancels or that times out."""
        if seq.ended:
            return
        self.scheduler.abort(seq, self.agenda.now, kind)
        if not self.flying:
            self.must_plan = True
        self.tell()

    def tell(self) -> None:
        """Notify clients and executor of the requests that have just ended."""
        for seq in self.scheduler.take_departed():
            if self.clients.react:
                self.clients.ended(seq)
            self.executor.forget(seq)
