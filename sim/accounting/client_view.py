"""Requests as their clients see them: over all replicas, attempts and legs, as one array entry each.

Without a trail every entry of a log is a request. With one, a request is a journey: its times count from its first
sending, and its answer is that of its last attempt, whichever replicas gave it. What earlier attempts did was in
vain.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from sim.accounting.ledger import begins, makespan
from sim.accounting.requests import CANCELLED, FINISHED, NEVER, REJECTED, RUNNING, TIMED_OUT, WAITING, Bools, Lives
from sim.log.events import Integers, Kind
from sim.log.service_log import Trail
from sim.request import Request

STATUS = {
    Kind.FINISHED: FINISHED,
    Kind.REJECTED: REJECTED,
    Kind.TIMED_OUT: TIMED_OUT,
    Kind.CANCELLED: CANCELLED,
}


class Injected:
    """All requests of a run, in order of the replicas' logs; arrays as those of `sim.accounting.requests.Lives`."""

    def __init__(self, fleet: Sequence[Lives]) -> None:
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
        return np.concatenate([getattr(lives, name) for lives in self.fleet])

    @cached_property
    def requests(self) -> list[Request]:
        """What was asked."""
        return [request for lives in self.fleet for request in lives.log.requests]

    @cached_property
    def reasons(self) -> list[str]:
        """Why each was rejected, empty if it was not."""
        return [reason for lives in self.fleet for reason in lives.reasons]

    @cached_property
    def replica(self) -> Integers:
        """The replica that had it last, NEVER if none did."""
        return np.repeat(np.arange(len(self.fleet)), [len(lives.log.requests) for lives in self.fleet])

    @property
    def span(self) -> int:
        """Nanoseconds from the first queue entry to the last end."""
        return makespan(self.fleet)

    @property
    def begins(self) -> int:
        """The first queue entry, ns."""
        return begins(self.fleet)

    def in_vain(self, number: int) -> Bools:
        """Of the entries of a replica's log, those whose work served nobody."""
        return self.fleet[number].in_vain

    def down(self, number: int) -> int:
        """Nanoseconds for which a replica was down."""
        return 0

    def entries(self, chosen: Bools) -> list[Bools]:
        """The entries of each log that belong to the chosen requests."""
        return np.split(chosen, np.cumsum([len(lives.log.requests) for lives in self.fleet])[:-1])

    def pauses_between_legs(self, chosen: Bools) -> Integers:
        """Gaps of the chosen requests between a token of one replica and the next of another, ns."""
        return np.zeros(0, np.int64)


class Journeys(Injected):
    """The same where a trail tells which entries belong together."""

    def __init__(self, fleet: Sequence[Lives], trail: Trail) -> None:
        self.fleet = fleet
        self.trail = trail
        count = len(trail.requests)
        self.journey, self.attempt, self.leg_replica, index = trail.table("legs").T
        first = np.cumsum([0, *(len(lives.log.requests) for lives in fleet)])
        self.entry = first[self.leg_replica] + index
        self.attempts = np.ones(count, np.int64)
        np.maximum.at(self.attempts, self.journey, self.attempt + 1)
        self.last = self.attempt + 1 == self.attempts[self.journey]
        self.queued = np.array(trail.sent, np.int64)
        self.wanted = np.array([request.arrival for request in trail.requests], np.int64)
        self.client_wait = self.queued - self.wanted
        self.ended = np.full(count, NEVER)
        self.status = np.full(count, WAITING)
        self.admitted = self.earliest("admitted")
        self.first_token = self.earliest("first_token")
        self.status[self.admitted != NEVER] = RUNNING
        time, ended, kind, self.end_reason = trail.table("ends").T
        self.ended[ended] = time
        self.status[ended] = np.array([STATUS.get(Kind(each), NEVER) for each in range(len(Kind))])[kind]
        self.finished = np.where(self.status == FINISHED, self.ended, NEVER)
        self.tokens = self.sum("tokens", self.last)
        self.preemptions = self.sum("preemptions", np.ones(len(self.last), bool))
        self.largest_gap = np.full(count, NEVER)
        np.maximum.at(self.largest_gap, self.journey[self.last], self.all("largest_gap")[self.entry[self.last]])
        np.maximum.at(self.largest_gap, *self.breaks)

    def earliest(self, name: str) -> Integers:
        """The first time something happened in the last attempt of each, NEVER if it did not."""
        times = self.all(name)[self.entry]
        chosen = self.last & (times != NEVER)
        found = np.full(len(self.trail.requests), np.iinfo(np.int64).max)
        np.minimum.at(found, self.journey[chosen], times[chosen])
        return np.where(found == np.iinfo(np.int64).max, NEVER, found)

    def sum(self, name: str, legs: Bools) -> Integers:
        """Counts of these legs added up for each journey."""
        found = np.zeros(len(self.trail.requests), np.int64)
        np.add.at(found, self.journey[legs], self.all(name)[self.entry[legs]])
        return found

    @cached_property
    def requests(self) -> list[Request]:
        """What was asked, in order of first sending."""
        return self.trail.requests

    @cached_property
    def reasons(self) -> list[str]:
        """Why each was rejected, empty if it was not."""
        found = [""] * len(self.trail.requests)
        _, ended, _, reason = self.trail.table("ends").T
        for journey, which in zip(ended.tolist(), reason.tolist(), strict=True):
            found[journey] = self.trail.reasons[which]
        return found

    @cached_property
    def replica(self) -> Integers:
        """The replica that had it last, NEVER if none did."""
        found = np.full(len(self.trail.requests), NEVER)
        found[self.journey] = self.leg_replica
        return found

    @cached_property
    def breaks(self) -> tuple[Integers, Integers]:
        """Gaps between a token of one leg and the first of a later one of the same attempt: journey, ns."""
        first, latest = self.all("first_token")[self.entry], self.all("last_token")[self.entry]
        chosen = np.flatnonzero(self.last & (first != NEVER))
        chosen = chosen[np.argsort(self.journey[chosen], kind="stable")]
        journey = self.journey[chosen]
        same = journey[1:] == journey[:-1]
        return journey[1:][same], (first[chosen][1:] - latest[chosen][:-1])[same]

    @cached_property
    def span(self) -> int:
        """Nanoseconds from the first sending to the last end."""
        if not len(self.queued):
            return 0
        ends = [int(lives.step_ends[-1]) for lives in self.fleet if len(lives.step_ends)]
        return max(int(self.ended.max()), *ends) - self.begins if ends else int(self.ended.max()) - self.begins

    @property
    def begins(self) -> int:
        """The first sending, ns; 0 if there is none."""
        return int(self.queued.min()) if len(self.queued) else 0

    @cached_property
    def vain_entries(self) -> Bools:
        """Entries of all logs whose work served nobody: of attempts before the last, and of all if it failed."""
        vain = np.zeros(sum(len(lives.log.requests) for lives in self.fleet), bool)
        vain[self.entry] = ~self.last | np.isin(self.status[self.journey], (CANCELLED, TIMED_OUT, REJECTED))
        return vain

    def in_vain(self, number: int) -> Bools:
        """Of the entries of a replica's log, those whose work served nobody."""
        return super().entries(self.vain_entries)[number]

    def down(self, number: int) -> int:
        """Nanoseconds for which a replica was down within the span; a step that a failure cut counts as such."""
        replica, since, _, until = self.trail.table("outages").T
        mine = replica == number
        end = self.begins + self.span
        lasted: Integers = np.clip(until[mine], self.begins, end) - np.clip(since[mine], self.begins, end)
        return int(lasted.sum())

    def entries(self, chosen: Bools) -> list[Bools]:
        """The entries of each log that belong to the chosen journeys."""
        mine = np.zeros(sum(len(lives.log.requests) for lives in self.fleet), bool)
        mine[self.entry] = chosen[self.journey]
        return super().entries(mine)

    def pauses_between_legs(self, chosen: Bools) -> Integers:
        """Gaps of the chosen journeys between a token of one replica and the next of another, ns."""
        journey, gap = self.breaks
        return gap[chosen[journey]]

    def time(self, name: str) -> Integers:
        """Nanoseconds that each journey waited at a router (`holds`), or that its KV was on its way (`transfers`)."""
        found = np.zeros(len(self.trail.requests), np.int64)
        journey, since, until = self.trail.table(name).T[:3]
        np.add.at(found, journey, until - since)
        return found
