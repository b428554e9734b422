"""Outages: replicas that fail and restart, at given times. Independent of clients and routers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Sequence as Several
from dataclasses import dataclass

from sim.log.events import Kind
from sim.log.service_log import ServiceLog
from sim.request import Nanoseconds
from sim.service.event_order import FAILURE, RESTART, Agenda, Rank
from sim.service.failure import Failure
from sim.service.replica import Replica

Times = Iterator[tuple[Nanoseconds, Nanoseconds]]
"""(start, duration) of outages, ns."""


@dataclass(frozen=True)
class Outages:
    """When replicas fail, and what becomes of their requests.

    when  for the number of a replica (start, duration) of its outages in ns, in order of start, perhaps infinite
    fate  PREEMPTED: the requests stay, and are computed again after the restart; MOVED: they go to another replica
          with the tokens they have; INTERRUPTED: they are lost
    """

    when: Mapping[int, Times]
    fate: Kind


class CountingAgenda:
    """An agenda that counts its events that are still to come (`pending`)."""

    def __init__(self, agenda: Agenda) -> None:
        self.agenda = agenda
        self.pending = 0

    @property
    def now(self) -> Nanoseconds:
        """The current instant."""
        return self.agenda.now

    def after(self, delay: Nanoseconds, rank: Rank, action: Callable[[object], None]) -> object:
        """Have `action` called in `delay` ns."""
        self.pending += 1

        def act(event: object) -> None:
            self.pending -= 1
            action(event)

        return self.agenda.after(delay, rank, act)


class Breakdowns:
    """Fails and restarts replicas, and logs that. Outages of one replica that overlap are one.

    busy   returns whether there is anything left to serve: if not, nothing fails any more
    fell   called when a replica has failed, with its number
    rose   called when a replica is about to restart, with its number
    """

    def __init__(
        self,
        agenda: Agenda,
        outages: Outages,
        replicas: Several[Replica],
        service_log: ServiceLog,
        busy: Callable[[], bool],
        fell: Callable[[int, Failure], None],
        rose: Callable[[int], None],
    ) -> None:
        self.agenda = agenda
        self.fate = outages.fate
        self.replicas = replicas
        self.service_log = service_log
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
        """A replica fails now, for `lasts` ns."""
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
        replica.notify_ended()
        self.fell(number, failure)

    def restart(self, number: int) -> None:
        """An outage is over; with the last of those that overlap, the replica restarts."""
        self.depth[number] -= 1
        if not self.depth[number]:
            self.service_log.outage(number, *self.since[number], self.agenda.now)
            self.rose(number)
            self.replicas[number].restart()
