"""Records of the requests of one engine, read from its log: timestamps, tokens, preemptions, gaps between tokens.

A gap is the time between two consecutive tokens of one request. Over a stint of decoding the gaps are the distances
between the ends of the steps that decode; across a pause or a preemption, the event of the next token has the step of
the token before.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sim.accounting.work.verifications import Verifications, awaited_until, gaps
from sim.log.events import EventLog, Integers, Kind

Bools = NDArray[np.bool_]

NEVER = -1

STATUSES = ("finished", "rejected", "timed_out", "cancelled", "waiting", "running")
FINISHED, REJECTED, TIMED_OUT, CANCELLED, WAITING, RUNNING = range(len(STATUSES))
LEFT = ("moved", "interrupted")
"""Further statuses of an entry of a log: it continued on another engine, or was lost with its own."""
MOVED, INTERRUPTED = range(len(STATUSES), len(STATUSES) + len(LEFT))


class RequestRecords:
    """One entry per request of the log, in order of arrival.

    Arrays are int64 of shape (requests,) unless said otherwise; times in ns, NEVER (-1) where there is none.

    time, kind, request, value  the columns of all events, of shape (events,)
    """

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self.time, self.kind, self.request, self.value = log.event_table().T

    def when(self, kind: Kind, first: bool = False) -> Integers:
        """When `kind` happened to each request: the last time, or the first."""
        chosen = np.flatnonzero(self.kind == kind)
        if first:
            chosen = chosen[::-1]
        times = np.full(len(self.log.requests), NEVER)
        times[self.request[chosen]] = self.time[chosen]
        return times

    def count(self, kind: Kind) -> Integers:
        """How often `kind` happened to each request."""
        return np.bincount(self.request[self.kind == kind], minlength=len(self.log.requests))

    def values(self, kind: Kind, default: int) -> Integers:
        """The value of the last event of a kind of each request, `default` where there is none."""
        chosen = self.kind == kind
        values = np.full(len(self.log.requests), default)
        values[self.request[chosen]] = self.value[chosen]
        return values

    @cached_property
    def queued(self) -> Integers:
        """Queue entry."""
        return self.when(Kind.QUEUED)

    @cached_property
    def wanted(self) -> Integers:
        """Arrival: when the client wanted to send the request."""
        return np.array([request.arrival for request in self.log.requests], np.int64)

    @cached_property
    def client_wait(self) -> Integers:
        """Time from arrival to queue entry: at the client and on the way."""
        return np.where(self.queued == NEVER, NEVER, self.queued - self.wanted)

    @cached_property
    def admitted(self) -> Integers:
        """First admission; a preemption does not restart the wait."""
        return self.when(Kind.ADMITTED, first=True)

    @cached_property
    def first_token(self) -> Integers:
        """First token."""
        return self.when(Kind.FIRST_TOKEN)

    @cached_property
    def finished(self) -> Integers:
        """Completion."""
        return self.when(Kind.FINISHED)

    @cached_property
    def ended(self) -> Integers:
        """Completion, rejection, time-out, cancellation, or departure to another engine."""
        ended = self.finished
        for kind in (Kind.REJECTED, Kind.TIMED_OUT, Kind.CANCELLED, Kind.MOVED, Kind.INTERRUPTED):
            ended = np.maximum(ended, self.when(kind))
        return ended

    @cached_property
    def preemptions(self) -> Integers:
        """How often each request was preempted."""
        return self.count(Kind.PREEMPTED)

    @cached_property
    def status(self) -> Integers:
        """Index into (*STATUSES, *LEFT)."""
        status = np.full(len(self.log.requests), WAITING)
        status[self.count(Kind.ADMITTED) > self.preemptions] = RUNNING
        status[self.finished != NEVER] = FINISHED
        status[self.count(Kind.REJECTED) > 0] = REJECTED
        status[self.count(Kind.TIMED_OUT) > 0] = TIMED_OUT
        status[self.count(Kind.CANCELLED) > 0] = CANCELLED
        status[self.count(Kind.MOVED) > 0] = MOVED
        status[self.count(Kind.INTERRUPTED) > 0] = INTERRUPTED
        return status

    @property
    def wasted(self) -> Bools:
        """Which requests did not deliver their answer, as far as this log says: bools, all their work is wasted."""
        return np.isin(self.status, (CANCELLED, TIMED_OUT, INTERRUPTED))

    @cached_property
    def rejection(self) -> Integers:
        """Index of the reason of rejection, or NEVER."""
        return self.values(Kind.REJECTED, NEVER)

    @property
    def reasons(self) -> list[str]:
        """Why each request was rejected, empty if it was not."""
        return [self.log.reasons[reason] if reason != NEVER else "" for reason in self.rejection]

    @cached_property
    def step_ends(self) -> Integers:
        """When each step ended: shape (steps,)."""
        runs, durations = self.log.run_table(), self.log.step_durations()
        total = np.cumsum(durations)
        first = np.cumsum(runs["steps"]) - runs["steps"]
        ends: Integers = total + np.repeat(runs["start"] - (total - durations)[first], runs["steps"])
        return ends

    @cached_property
    def decode_steps(self) -> Integers:
        """The steps from which decoding sequences get a token: all, but those in which they stand still."""
        decodes = np.ones(len(self.step_ends), bool)
        decodes[self.log.still()] = False
        return np.flatnonzero(decodes)

    @cached_property
    def token_distances(self) -> Integers:
        """Time from the end of the decode step before to that of each: shape (steps,), 0 for others."""
        distances = np.zeros(len(self.step_ends), np.int64)
        distances[self.decode_steps] = np.diff(self.step_ends[self.decode_steps], prepend=0)
        return distances

    @cached_property
    def all_stints(self) -> tuple[Integers, Integers, Integers]:
        """Stints of decoding: request, first step, and the step after the last whose token was delivered."""
        request, first, end = self.log.stint_table().T
        end = np.minimum(end, self.awaited[request])
        some = end > first
        return request[some], first[some], end[some]

    @cached_property
    def awaited(self) -> Integers:
        """The step from which on nobody waits for the tokens of each request."""
        return awaited_until(self.kind, self.request, self.value, len(self.log.requests), len(self.step_ends))

    @cached_property
    def verifications(self) -> Verifications:
        """What verifications of drafts brought; none without speculative decoding."""
        return Verifications(self.log, self.awaited)

    @cached_property
    def deliveries(self) -> tuple[Integers, Integers]:
        """With speculative decoding: each time at which one or more tokens came: (request, ns)."""
        first = np.isin(self.kind, (Kind.FIRST_TOKEN, Kind.RESUMED))
        request, time = self.verifications.deliveries(self.step_ends)
        return np.concatenate((self.request[first], request)), np.concatenate((self.time[first], time))

    @cached_property
    def first_places(self) -> tuple[Integers, Bools]:
        """Of each of `all_stints`: the place of its first token in `decode_steps`, and whether it is late.

        A late one does not follow the token before it at the distance between two decode steps.
        """
        _, first, end = self.all_stints
        place = np.searchsorted(self.decode_steps, first)
        before = np.concatenate(([-1], self.decode_steps))[place]
        return place, (before != first - 1) & (place < np.searchsorted(self.decode_steps, end))

    @cached_property
    def late_starts(self) -> tuple[Integers, Integers, Integers]:
        """Stints whose first token is late: request, step of the token before, step of the first token."""
        request, first, _ = self.all_stints
        place, late = self.first_places
        return request[late], first[late] - 1, self.decode_steps[place[late]]

    @cached_property
    def stints(self) -> tuple[Integers, Integers, Integers]:
        """Stints without late first tokens: request, first and end as places in `decode_steps`."""
        request, first, end = self.all_stints
        if len(self.decode_steps) == len(self.step_ends):
            return request, first, end
        place, late = self.first_places
        place, end = place + late, np.searchsorted(self.decode_steps, end)
        some = end > place
        return request[some], place[some], end[some]

    def decoders_by_step(self, chosen: Bools) -> Integers:
        """How many decoding sequences of the chosen requests got a token from each step: shape (steps,).

        Late first tokens are not counted: their gaps are `pauses`.
        """
        request, first, end = self.stints
        mine = chosen[request]
        bins = len(self.decode_steps) + 1
        change = np.bincount(first[mine], minlength=bins) - np.bincount(end[mine], minlength=bins)
        found = np.zeros(len(self.step_ends), np.int64)
        found[self.decode_steps] = np.cumsum(change)[:-1]
        return found

    @cached_property
    def delivered_by_step(self) -> Integers:
        """Tokens delivered by each step: shape (steps,). One collected later counts for the step that computed it."""
        everyone = np.ones(len(self.log.requests), bool)
        other = np.isin(self.kind, (Kind.FIRST_TOKEN, Kind.RESUMED))
        brought = np.searchsorted(self.step_ends, self.time[other], side="right") - 1
        brought = np.concatenate((brought, self.late_starts[2]))
        verified = self.verifications.tokens_by_step(len(self.step_ends))
        return self.decoders_by_step(everyone) + verified + np.bincount(brought, minlength=len(self.step_ends))

    @cached_property
    def pauses(self) -> tuple[Integers, Integers]:
        """Gaps that contain a step without a token, unless all decoders stood still in it: (request, ns).

        With speculative decoding all gaps: from one delivery to the next, of however many tokens.
        """
        if len(self.verifications.step):
            return gaps(*self.deliveries)
        resumed = self.kind == Kind.RESUMED
        paused = self.time[resumed] - self.step_ends[self.value[resumed]]
        request, before, step = self.late_starts
        late = self.step_ends[step] - self.step_ends[before]
        return np.concatenate((self.request[resumed], request)), np.concatenate((paused, late))

    @cached_property
    def tokens(self) -> Integers:
        """Tokens delivered to each request."""
        request, first, end = self.stints
        given = np.bincount(request, end - first, len(self.log.requests)).astype(np.int64)
        given += np.bincount(self.late_starts[0], minlength=len(self.log.requests))
        given += self.verifications.tokens_of(len(self.log.requests))
        return given + self.count(Kind.FIRST_TOKEN) + self.count(Kind.RESUMED)

    @cached_property
    def last_token(self) -> Integers:
        """When each request got its latest token."""
        resumed = self.kind == Kind.RESUMED
        latest = self.first_token.copy()
        np.maximum.at(latest, self.request[resumed], self.time[resumed])
        request, _, end = self.stints
        np.maximum.at(latest, request, self.step_ends[self.decode_steps[end - 1]])
        request, _, step = self.late_starts
        np.maximum.at(latest, request, self.step_ends[step])
        np.maximum.at(latest, *self.verifications.deliveries(self.step_ends))
        return latest

    @cached_property
    def largest_gap(self) -> Integers:
        """The largest time between two consecutive tokens of each request, NEVER with fewer than two."""
        largest = np.full(len(self.log.requests), NEVER)
        request, first, end = self.stints
        np.maximum.at(largest, request, range_maxima(self.token_distances[self.decode_steps], first, end))
        np.maximum.at(largest, *self.pauses)
        return largest


def range_maxima(values: Integers, first: Integers, end: Integers) -> Integers:
    """The maximum of `values` over each non-empty half-open range, by doubling (a sparse table)."""
    level = np.frexp(end - first)[1] - 1
    result = np.zeros(len(first), np.int64)
    table, width = values, 1
    for depth in range(int(level.max(initial=-1)) + 1):
        here = level == depth
        result[here] = np.maximum(table[first[here]], table[end[here] - width])
        table, width = np.maximum(table[:-width], table[width:]), 2 * width
    return result


def status_counts(status: Integers) -> dict[str, int]:
    """How many requests were injected, and what became of them."""
    counts = np.bincount(status, minlength=len(STATUSES))
    return {"injected": len(status)} | dict(zip(STATUSES, counts.tolist()[: len(STATUSES)], strict=True))
