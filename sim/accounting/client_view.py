"""Requests as their clients see them: one array entry for each request, over all replicas, attempts and legs.

Without a service log every entry of a replica's log is a request (`Injected`). With one (`ClientView`), the times of
a request count from its first sending, and its answer is that of its last attempt, whichever replicas gave it; the
work of earlier attempts is wasted.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from sim.accounting.ledger import begins, makespan
from sim.accounting.requests import (
    CANCELLED,
    FINISHED,
    NEVER,
    REJECTED,
    RUNNING,
    TIMED_OUT,
    WAITING,
    Bools,
    RequestRecords,
)
from sim.log.events import Integers, Kind
from sim.log.service_log import ServiceLog
from sim.request import Request

STATUS = {
    Kind.FINISHED: FINISHED,
    Kind.REJECTED: REJECTED,
    Kind.TIMED_OUT: TIMED_OUT,
    Kind.CANCELLED: CANCELLED,
}


class Injected:
    """All requests of a run, in order of the replicas' logs.

    Arrays as those of `sim.accounting.requests.RequestRecords`, of shape (requests,): int64, times in ns, NEVER where
    there is none.
    """

    def __init__(self, fleet: Sequence[RequestRecords]) -> None:
        self.fleet = fleet
        self.status = self.all("status")
        self.wanted = self.all("wanted")
        self.queued = self.all("queued")
        self.admitted = self.all("admitted")
        self.first_token = self.all("first_token")
        self.finished = self.all("finished")
        self.ended = self.all("ended")
        self.tokens = self.all("tokens")
        self.preemptions = self.all("preemptions")
        self.largest_gap = self.all("largest_gap")
        self.client_wait = self.all("client_wait")

    def all(self, name: str) -> Integers:
        """An array of every entry of every log."""
        return np.concatenate([getattr(records, name) for records in self.fleet])

    @cached_property
    def requests(self) -> list[Request]:
        """The requests."""
        return [request for records in self.fleet for request in records.log.requests]

    @cached_property
    def reasons(self) -> list[str]:
        """Why each was rejected, empty if it was not."""
        return [reason for records in self.fleet for reason in records.reasons]

    @cached_property
    def replica(self) -> Integers:
        """The replica that had it last, NEVER if none did."""
        return np.repeat(np.arange(len(self.fleet)), [len(records.log.requests) for records in self.fleet])

    @property
    def span(self) -> int:
        """Nanoseconds from the first queue entry to the last end."""
        return makespan(self.fleet)

    @property
    def begins(self) -> int:
        """The first queue entry, ns."""
        return begins(self.fleet)

    def wasted(self, number: int) -> Bools:
        """Of the entries of a replica's log, those whose work was wasted."""
        return self.fleet[number].wasted

    def down(self, number: int) -> int:
        """Nanoseconds for which a replica was down."""
        return 0

    def entries(self, chosen: Bools) -> list[Bools]:
        """The entries of each log that belong to the chosen requests."""
        return np.split(chosen, np.cumsum([len(records.log.requests) for records in self.fleet])[:-1])

    def pauses_between_legs(self, chosen: Bools) -> Integers:
        """Gaps of the chosen requests between a token of one replica and the next of another, ns."""
        return np.zeros(0, np.int64)


class Legs:
    """The legs of a service log: arrays of shape (legs,) but for `attempts`.

    request   the number of the request, and `attempt` that of its attempt
    replica   the replica that served the leg
    entry     the place among the entries of all logs
    last      whether the attempt was the last of its request
    attempts  how many attempts each request had, of shape (requests,)
    """

    def __init__(self, fleet: Sequence[RequestRecords], service_log: ServiceLog) -> None:
        self.request, self.attempt, self.replica, index = service_log.table("legs").T
        first = np.cumsum([0, *(len(records.log.requests) for records in fleet)])
        self.entry = first[self.replica] + index
        self.attempts = np.ones(len(service_log.requests), np.int64)
        np.maximum.at(self.attempts, self.request, self.attempt + 1)
        self.last = self.attempt + 1 == self.attempts[self.request]


class ClientView(Injected):
    """The same where a service log says which entries belong to one request; in order of first sending."""

    def __init__(self, fleet: Sequence[RequestRecords], service_log: ServiceLog) -> None:
        self.fleet = fleet
        self.service_log = service_log
        count = len(service_log.requests)
        self.legs = legs = Legs(fleet, service_log)
        self.queued = np.array(service_log.sent, np.int64)
        self.wanted = np.array([request.arrival for request in service_log.requests], np.int64)
        self.client_wait = self.queued - self.wanted
        self.ended = np.full(count, NEVER)
        self.status = np.full(count, WAITING)
        self.admitted = self.earliest("admitted")
        self.first_token = self.earliest("first_token")
        self.status[self.admitted != NEVER] = RUNNING
        time, ended, kind, _ = service_log.table("ends").T
        self.ended[ended] = time
        self.status[ended] = np.array([STATUS.get(Kind(each), NEVER) for each in range(len(Kind))])[kind]
        self.finished = np.where(self.status == FINISHED, self.ended, NEVER)
        self.tokens = self.sum("tokens", legs.last)
        self.preemptions = self.sum("preemptions", np.ones(len(legs.last), bool))
        self.largest_gap = np.full(count, NEVER)
        np.maximum.at(self.largest_gap, legs.request[legs.last], self.all("largest_gap")[legs.entry[legs.last]])
        np.maximum.at(self.largest_gap, *self.breaks)

    @property
    def attempts(self) -> Integers:
        """How many attempts each request had."""
        return self.legs.attempts

    def earliest(self, name: str) -> Integers:
        """The first time something happened in the last attempt of each, NEVER if it did not."""
        times = self.all(name)[self.legs.entry]
        chosen = self.legs.last & (times != NEVER)
        found = np.full(len(self.service_log.requests), np.iinfo(np.int64).max)
        np.minimum.at(found, self.legs.request[chosen], times[chosen])
        return np.where(found == np.iinfo(np.int64).max, NEVER, found)

    def sum(self, name: str, legs: Bools) -> Integers:
        """Counts of these legs added up for each request."""
        found = np.zeros(len(self.service_log.requests), np.int64)
        np.add.at(found, self.legs.request[legs], self.all(name)[self.legs.entry[legs]])
        return found

    @cached_property
    def requests(self) -> list[Request]:
        """The requests, in order of first sending."""
        return self.service_log.requests

    @cached_property
    def reasons(self) -> list[str]:
        """Why each was rejected, empty if it was not."""
        found = [""] * len(self.service_log.requests)
        _, ended, _, reason = self.service_log.table("ends").T
        for request, which in zip(ended.tolist(), reason.tolist(), strict=True):
            found[request] = self.service_log.reasons[which]
        return found

    @cached_property
    def replica(self) -> Integers:
        """The replica that had it last, NEVER if none did."""
        found = np.full(len(self.service_log.requests), NEVER)
        found[self.legs.request] = self.legs.replica
        return found

    @cached_property
    def breaks(self) -> tuple[Integers, Integers]:
        """Gaps between a token of one leg and the first of a later one of the same attempt: request, ns."""
        first, latest = self.all("first_token")[self.legs.entry], self.all("last_token")[self.legs.entry]
        chosen = np.flatnonzero(self.legs.last & (first != NEVER))
        chosen = chosen[np.argsort(self.legs.request[chosen], kind="stable")]
        request = self.legs.request[chosen]
        same = request[1:] == request[:-1]
        return request[1:][same], (first[chosen][1:] - latest[chosen][:-1])[same]

    @cached_property
    def span(self) -> int:
        """Nanoseconds from the first sending to the last end."""
        if not len(self.queued):
            return 0
        ends = [int(records.step_ends[-1]) for records in self.fleet if len(records.step_ends)]
        return max(int(self.ended.max()), *ends) - self.begins if ends else int(self.ended.max()) - self.begins

    @property
    def begins(self) -> int:
        """The first sending, ns; 0 if there is none."""
        return int(self.queued.min()) if len(self.queued) else 0

    @cached_property
    def wasted_entries(self) -> Bools:
        """Entries of all logs whose work was wasted: of all attempts but the last, and of that if it failed."""
        wasted = np.zeros(sum(len(records.log.requests) for records in self.fleet), bool)
        lost = np.isin(self.status, (CANCELLED, TIMED_OUT, REJECTED))
        wasted[self.legs.entry] = ~self.legs.last | lost[self.legs.request]
        return wasted

    def wasted(self, number: int) -> Bools:
        """Of the entries of a replica's log, those whose work was wasted."""
        return super().entries(self.wasted_entries)[number]

    def down(self, number: int) -> int:
        """Nanoseconds for which a replica was down within the span; a step that a failure cut counts as such."""
        replica, since, _, until = self.service_log.table("outages").T
        mine = replica == number
        end = self.begins + self.span
        lasted: Integers = np.clip(until[mine], self.begins, end) - np.clip(since[mine], self.begins, end)
        return int(lasted.sum())

    def entries(self, chosen: Bools) -> list[Bools]:
        """The entries of each log that belong to the chosen requests."""
        mine = np.zeros(sum(len(records.log.requests) for records in self.fleet), bool)
        mine[self.legs.entry] = chosen[self.legs.request]
        return super().entries(mine)

    def pauses_between_legs(self, chosen: Bools) -> Integers:
        """Gaps of the chosen requests between a token of one replica and the next of another, ns."""
        request, gap = self.breaks
        return gap[chosen[request]]

    def time(self, name: str) -> Integers:
        """Nanoseconds that each request waited at a router (`holds`), or that its KV was on its way (`transfers`).

        `kept`: that its KV was on the replica that computed its prompt, afterwards.
        """
        found = np.zeros(len(self.service_log.requests), np.int64)
        request, since, until = self.service_log.table(name).T[:3]
        np.add.at(found, request, until - since)
        return found


def injected_requests(fleet: Sequence[RequestRecords], service_log: ServiceLog | None) -> Injected:
    """All requests of a run, as their clients see them."""
    return Injected(fleet) if service_log is None else ClientView(fleet, service_log)
