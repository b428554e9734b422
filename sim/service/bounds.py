"""The loop that runs a simulation to its end, or stops it: beyond its bounds, or without progress."""

from __future__ import annotations

import struct
from collections.abc import Callable
from collections.abc import Sequence as Several
from dataclasses import dataclass
from math import inf
from typing import Literal

from sim.log.events import EventLog
from sim.log.service_log import END, OUTAGE, ServiceLog
from sim.log.step_records import RUN
from sim.request import Nanoseconds
from sim.service.clock import Clock

LATEST: Nanoseconds = 2**62
"""146 years. Nothing later is simulated."""
EVERY = 256
"""Events between two checks."""
QUIET_EVENTS = 500_000
"""Events in a row in which no step ends and no request begins or ends: no progress."""
QUIET_FAILURES = 10_000
"""The same in failures of replicas, while requests are under way."""

What = Literal["steps", "batches", "retries", "failures", "time", "quiet", "failing", "waiting"]


class Stopped(Exception):  # noqa: N818 - the run is at fault, not the program
    """A run was stopped.

    what   the bound it exceeded; or "time" (146 years), "quiet" (events without progress), "failing" (failures
           without progress), "waiting" (nothing is left to happen, and requests have not ended)
    count  how much of it there was
    now    when, ns
    ended  how many of the `sent` requests had ended
    """

    def __init__(self, what: What, count: int, now: Nanoseconds, ended: int, sent: int) -> None:
        super().__init__(f"{what}: {count} at {now} ns, when {ended} of {sent} requests had ended")
        self.what: What = what
        self.count = count
        self.now = now
        self.ended = ended
        self.sent = sent


@dataclass(frozen=True)
class Bounds:
    """The most that a run may do, all replicas together; None: no bound.

    steps     steps
    batches   runs of steps, each from a plan of its own
    retries   attempts of clients after their first
    failures  outages of replicas
    """

    steps: int | None = None
    batches: int | None = None
    retries: int | None = None
    failures: int | None = None


NONE = Bounds()


class Watch:
    """Compares what a run has done with its bounds. Raises Stopped."""

    def __init__(self, bounds: Bounds, logs: Several[EventLog], service_log: ServiceLog | None) -> None:
        self.bounds = bounds
        self.logs = logs
        self.service_log = service_log
        self.events = 0
        self.progress = (0, 0, 0)
        self.seen = (0, 0)  # events and failures at the last progress

    def look(self, now: Nanoseconds, events: int) -> None:
        """Check after `events` more events."""
        self.events += events
        done = self.done()
        for what, count in done.items():
            most = getattr(self.bounds, what)
            if most is not None and count > most:
                raise self.stopped(what, count, now)
        progress = (done["steps"], *self.requests())
        failures = done["failures"]
        if progress != self.progress or progress[1] == progress[2]:
            self.progress, self.seen = progress, (self.events, failures)
        elif failures - self.seen[1] > QUIET_FAILURES:
            raise self.stopped("failing", failures - self.seen[1], now)
        elif self.events - self.seen[0] > QUIET_EVENTS:
            raise self.stopped("quiet", self.events - self.seen[0], now)

    def finish(self, now: Nanoseconds) -> None:
        """Check that every request has ended, when nothing is left to happen."""
        sent, ended = self.requests()
        if ended < sent:
            raise self.stopped("waiting", sent - ended, now)

    def stopped(self, what: What, count: int, now: Nanoseconds) -> Stopped:
        """The exception to be raised."""
        sent, ended = self.requests()
        return Stopped(what, count, now, ended, sent)

    def done(self) -> dict[What, int]:
        """How much has been done so far, by the names of `Bounds`."""
        service_log = self.service_log
        return {
            "steps": sum(log.steps for log in self.logs),
            "batches": sum(len(log.ran.runs) for log in self.logs) // (8 * len(RUN)),
            "retries": service_log.retries if service_log is not None else 0,
            "failures": len(service_log.outages) // (8 * len(OUTAGE)) if service_log is not None else 0,
        }

    def requests(self) -> tuple[int, int]:
        """(requests sent, requests ended) so far."""
        if self.service_log is not None:
            return len(self.service_log.requests), len(self.service_log.ends) // (8 * len(END))
        return sum(len(log.requests) for log in self.logs), sum(log.ended for log in self.logs)


def run_to_end(
    env: Clock,
    logs: Several[EventLog],
    service_log: ServiceLog | None = None,
    bounds: Bounds = NONE,
    progress: Callable[[int], None] | None = None,
) -> None:
    """Run until nothing is left to happen; `progress` is called now and then with the number of ended requests.

    Raises Stopped for a run beyond its bounds or 146 years, and for one that makes no progress.
    """
    watch = Watch(bounds, logs, service_log)
    looks = 0
    due = env.peek()
    while due != inf:
        for _ in range(EVERY):
            if due > LATEST:
                raise watch.stopped("time", due, env.now)  # type: ignore[arg-type]  # an integer, as every delay
            try:
                due = env.advance()
            except (OverflowError, struct.error):  # a time that 64 bits do not hold
                raise watch.stopped("time", 0, env.now) from None
            if due == inf:
                break
        watch.look(env.now, EVERY)
        looks += 1
        if progress is not None and looks % 4 == 0:
            progress(sum(log.ended for log in logs))
    watch.finish(env.now)
    if progress is not None:
        progress(sum(log.ended for log in logs))
