"""Replicas that fail, for a while: when, and what the others do then.

Draws nothing: the times are given. Knows neither clients nor routers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Sequence as Several
from dataclasses import dataclass

from sim.log.events import Kind
from sim.log.service_log import Trail
from sim.request import Nanoseconds
from sim.service.event_order import FAILURE, RESTART, Agenda, Rank
from sim.service.failure import Failure
from sim.service.replica import Replica

Times = Iterator[tuple[Nanoseconds, Nanoseconds]]
"""(start, how long) of outages."""


@dataclass(frozen=True)
class Outages:
    """When replicas fail, and what becomes of their requests.

    when  for a replica's number (start, how long), in order of start, perhaps without end
    fate  PREEMPTED: the requests stay, and are computed again after the restart; MOVED: they go to another replica
          with the tokens they have; INTERRUPTED: they are lost
    """

    when: Mapping[int, Times]
    fate: Kind


class Counting:
    """An agenda that knows how much of what was put on it is still to come."""

    def __init__(self, agenda: Agenda) -> None:
        self.agenda = agenda
        self.pending = 0

    @property
    def now(self) -> Nanoseconds:
        """The current instant."""
        return self.agenda.now

    def after(self, delay: Nanoseconds, rank: Rank, action: Callable[[object], None]) -> object:
        """Have `action` called so long from now."""
        self.pending += 1

        def act(event: object) -> None:
            self.pending -= 1
            action(event)

        return self.agenda.after(delay, rank, act)


class Breakdowns:
    """Fails replicas and restarts them, and writes that into the trail. Outages of one that overlap are one.

    busy   whether there is anything left to serve: if not, nothing fails any more
    fell   hears of a replica that has failed, by its number
    rose   hears of one that is about to restart
    """

    def __init__(
        self,
        agenda: Agenda,
        outages: Outages,
        replicas: Several[Replica],
        trail: Trail,
        busy: Callable[[], bool],
        fell: Callable[[int, Failure], None],
        rose: Callable[[int], None],
    ) -> None:
        self.agenda = agenda
        self.fate = outages.fate
        self.replicas = replicas
        self.trail = trail
        self.busy = busy
        self.fell = fell
        self.rose = rose
        self.depth = [0] * len(replicas)  # outages that a replica is in
        self.since = [(0, 0)] * len(replicas)  # start of the step that was cut, failure
        for number, times in outages.when.items():
            self.expect(number, times)

    def expect(self, number: int, times: Times) -> None:
        """Schedule the next outage of a replica."""
        start, lasts = next(times, (None, 0))
        if start is not None:
            self.agenda.after(max(0, start - self.agenda.now), FAILURE, lambda _: self.fail(number, lasts, times))

    def fail(self, number: int, lasts: Nanoseconds, times: Times) -> None:
        """A replica fails now, for so long."""
        if not self.busy():
            return
        self.agenda.after(lasts, RESTART, lambda _: self.restart(number))
        self.expect(number, times)
        self.depth[number] += 1
        if self.depth[number] > 1:
            return
        replica = self.replicas[number]
        failure = replica.fail(self.fate)
        self.since[number] = failure.since, self.agenda.now
        replica.tell()
        self.fell(number, failure)

    def restart(self, number: int) -> None:
        """An outage is over, and with the last one the replica is there again."""
        self.depth[number] -= 1
        if not self.depth[number]:
            self.trail.outage(number, *self.since[number], self.agenda.now)
            self.rose(number)
            self.replicas[number].restart()
