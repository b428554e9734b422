"""A whole run: requests arrive, a replica works, the log comes out. Knows no file and no policy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import simpy

from sim.cost import StepCost
from sim.events import EventLog, Kind
from sim.replica import ARRIVAL, CANCELLATION, TIMEOUT, At, Clock, Replica
from sim.request import Request, Sequence
from sim.scheduler import Scheduler


class Arrivals:
    """Sends each request to the replica at its instant."""

    def __init__(self, env: Clock, requests: Iterator[Request], replica: Replica) -> None:
        self.env = env
        self.requests = requests
        self.replica = replica
        self.due: Request | None = None
        self.expect_next()

    def expect_next(self) -> None:
        """Schedule the next arrival. Raises ValueError if it lies in the past."""
        self.due = next(self.requests, None)
        if self.due is None:
            return
        delay = self.due.arrival - self.env.now
        if delay < 0:
            raise ValueError(f"request {self.due.id} arrives before the one ahead of it; expected order of arrival")
        At(self.env, delay, ARRIVAL, self.arrive)

    def arrive(self, _: simpy.Event) -> None:
        """One request arrives; the next is scheduled first, so that all of one instant precede its plan."""
        request = self.due
        assert request is not None
        self.expect_next()
        seq = self.replica.submit(request)
        if seq is not None:
            self.set_limits(seq)

    def set_limits(self, seq: Sequence) -> None:
        """Schedule when the client of a request gives up on it."""
        request, abort = seq.request, self.replica.abort
        if request.cancel_after is not None:
            At(self.env, request.cancel_after, CANCELLATION, lambda _: abort(seq, Kind.CANCELLED))
        if request.timeout is not None:
            At(self.env, request.timeout, TIMEOUT, lambda _: abort(seq, Kind.TIMED_OUT))
        if request.queue_timeout is not None:
            At(self.env, request.queue_timeout, TIMEOUT, lambda _: self.expire(seq))

    def expire(self, seq: Sequence) -> None:
        """A request times out if it has waited until now."""
        if seq.entered < 0:
            self.replica.abort(seq, Kind.TIMED_OUT)


def simulate(
    requests: Iterable[Request],
    scheduler: Scheduler,
    cost: StepCost,
    macro: bool = True,
    progress: Callable[[int], None] | None = None,
) -> EventLog:
    """Run the requests, which come in order of arrival, to the end of the last; returns the log.

    `macro=False` makes every step an event of its own: the reference, slower, with the same log.
    `progress` is told now and then how many requests have ended.
    """
    env = Clock(initial_time=0)
    replica = Replica(env, scheduler, cost, macro)
    Arrivals(env, iter(requests), replica)
    if progress is None:
        env.run()
    else:
        report_while_running(env, scheduler.log, progress)
    scheduler.check()
    return scheduler.log


def report_while_running(env: Clock, log: EventLog, progress: Callable[[int], None]) -> None:
    """Run to the end, and tell `progress` whenever another thousand events have passed."""
    while env.peek() != float("inf"):
        for _ in range(1000):
            if env.peek() == float("inf"):
                break
            env.step()
        progress(log.ended)
