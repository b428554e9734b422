"""The event log: the only output of a run. Flat integer arrays, written in order, never read for a decision.

Six kinds of record. Events: something happened to a request. Stays: a sequence had a slot for a range of steps.
Stints: within a stay, it decoded, one token in each of a range of steps. Chunks: it was in a step otherwise,
computing so many positions after so many. Verifications: a step verified its drafts. Runs: steps with the same
batch, back to back, each with its duration (`sim.log.step_records`).
Steps are numbered from 0 in the order they ran. Metrics are computed in `sim.accounting.metrics`.
"""

from __future__ import annotations

import hashlib
from array import array
from enum import IntEnum
from struct import Struct

import numpy as np
from numpy.typing import NDArray

from sim.log.cache_use import CacheUse
from sim.log.merged_runs import cut, merged
from sim.log.step_records import PACK_RUN, RUN, StepRecords
from sim.request import Nanoseconds, Request

Integers = NDArray[np.int64]


class Kind(IntEnum):
    """What happened to a request; the event's value in brackets."""

    QUEUED = 0
    """[positions that another engine had computed, and that are lost]"""
    REJECTED = 1
    """[index of the reason]"""
    ADMITTED = 2
    """again after each preemption [positions found computed]"""
    FIRST_TOKEN = 3
    RESUMED = 4
    """its next token, after steps without one [the step that brought the token before]"""
    PREEMPTED = 5
    """[computed positions thrown away; 0 if its last token is in flight]"""
    LOST = 6
    """its last token was generated, but never collected [the step that generated it]"""
    FINISHED = 7
    """[tokens delivered]"""
    RELEASED = 8
    """slot and pages are free again [whether it had nothing left to compute]"""
    DEQUEUED = 9
    """it left the queue without being admitted"""
    CANCELLED = 10
    """its client gave up [steps that had ended by then: tokens of later ones are not delivered]"""
    TIMED_OUT = 11
    """it timed out [steps that had ended by then]"""
    MOVED = 12
    """it continues on another engine [computed positions thrown away]"""
    INTERRUPTED = 13
    """its engine failed, and its tokens are lost [steps that had ended by then]"""
    FETCHING = 14
    """it has a slot, and pages for KV that is on another engine [positions to be fetched]"""
    FETCHED = 15
    """its KV is here [the first step that may compute it]"""


QUEUED, REJECTED, ADMITTED, FIRST_TOKEN, RESUMED, PREEMPTED, LOST, FINISHED, RELEASED = list(Kind)[:9]
DEQUEUED, CANCELLED, TIMED_OUT, MOVED, INTERRUPTED, FETCHING, FETCHED = list(Kind)[9:]


class Reason(IntEnum):
    """Why the admission pass of a step ended with someone still waiting."""

    NO_DEMAND = 0
    NO_BUDGET = 1
    NO_MEMORY = 2
    BLOCKED = 3
    LIMITED = 4


NO_DEMAND, NO_BUDGET, NO_MEMORY, BLOCKED, LIMITED = Reason

EVENT = ("time", "kind", "request", "value")
STAY = ("request", "first", "end")
STINT = ("request", "first", "end")
NOBODY = -1  # in place of the request of a stint: nobody decodes in these steps
CHUNK = ("step", "request", "start", "tokens")
PACK_2, PACK_3, PACK_4 = (Struct(f"={count}q").pack for count in (2, 3, 4))
"""Records as 64-bit integers: packing is several times faster than extending an array."""


class EventLog:
    """What happened on one engine, in 64-bit integers; times in ns.

    slots, pages, page_size  of the engine
    on_demand  pages are taken when their first position is computed, so that the pages held grow with the pages
               filled during a run; otherwise a sequence holds all its pages from admission on
    depth      steps in flight at once; with 2, a step is planned when the one before it starts
    cache      counters of the prefix cache, not part of the digest; None without one
    ran        the steps
    requests   in order of arrival: the index of a request is its place here
    reasons    messages of rejections, by the value of REJECTED
    ended      number of requests that have ended
    """

    def __init__(
        self,
        slots: int,
        pages: int,
        page_size: int,
        on_demand: bool,
        depth: int = 1,
        cache: CacheUse | None = None,
    ) -> None:
        self.slots = slots
        self.pages = pages
        self.page_size = page_size
        self.on_demand = on_demand
        self.depth = depth
        self.cache = cache
        self.requests: list[Request] = []
        self.reasons: list[str] = []
        self.events = bytearray()
        self.stays = bytearray()
        self.stints = bytearray()
        self.chunks = bytearray()
        self.ran = StepRecords()
        self.rests = bytearray()
        self.ended = 0

    @property
    def steps(self) -> int:
        """Steps run so far."""
        return len(self.ran.durations)

    def add(self, request: Request) -> int:
        """Register a request; returns the index that its events carry."""
        self.requests.append(request)
        return len(self.requests) - 1

    def event(self, now: Nanoseconds, kind: Kind, index: int, value: int = 0) -> None:
        """Something happened to request `index`."""
        self.events += PACK_4(now, kind, index, value)

    def end(self, now: Nanoseconds, kind: Kind, index: int, value: int = 0) -> None:
        """Request `index` ended, by an event of this kind."""
        self.events += PACK_4(now, kind, index, value)
        self.ended += 1

    def reject(self, now: Nanoseconds, index: int, reason: str) -> None:
        """A request was rejected."""
        if reason not in self.reasons:
            self.reasons.append(reason)
        self.end(now, REJECTED, index, self.reasons.index(reason))

    def stay(self, index: int, first: int, end: int) -> None:
        """Request `index` had a slot in each step from `first` to before `end`."""
        self.stays += PACK_3(index, first, end)

    def stint(self, index: int, first: int, end: int) -> None:
        """Request `index` decoded: it got a token from each step from `first` to before `end`."""
        self.stints += PACK_3(index, first, end)

    def chunk(self, index: int, start: int, tokens: int) -> None:
        """In the next step, request `index` computes `tokens` positions after `start`."""
        self.chunks += PACK_4(len(self.ran.durations), index, start, tokens)

    def run(self, row: tuple[int, ...], durations: array[Nanoseconds], growth: array[int]) -> None:
        """Steps with the same batch: a row of RUN, each step's duration and the pages it began to fill.

        growth[0] is 0: what the first step fills is in the row.
        """
        ran = self.ran
        ran.runs += PACK_RUN(*row)
        ran.durations.extend(durations)
        ran.growth.extend(growth)

    def stand_still(self) -> None:
        """In the next step no sequence decodes: stints that include it got no token from it."""
        self.stints += PACK_3(NOBODY, self.steps, self.steps + 1)

    def forget_steps_in_flight(self) -> None:
        """Cut stays and stints to the steps that have ended: those in flight never will."""
        self.stays, self.stints = (cut(table, self.steps) for table in (self.stay_table(), self.stint_rows()))

    def rest(self, now: Nanoseconds, cached: int) -> None:
        """The engine has nothing to do now, and `cached` of its free pages are still in the cache."""
        self.rests += PACK_2(now, cached)

    def rest_table(self) -> Integers:
        """(time, cached pages) of each time the engine ran out of work: int64 of shape (rests, 2), a view."""
        return np.frombuffer(self.rests, np.int64).reshape(-1, 2)

    def event_table(self) -> Integers:
        """All events: int64 of shape (events, len(EVENT)), a view."""
        return np.frombuffer(self.events, np.int64).reshape(-1, len(EVENT))

    def stay_table(self) -> Integers:
        """All stays: int64 of shape (stays, len(STAY)), a view."""
        return np.frombuffer(self.stays, np.int64).reshape(-1, len(STAY))

    def stint_rows(self) -> Integers:
        """All stints and steps in which all stand still, as they were written: (rows, len(STINT)), a view."""
        return np.frombuffer(self.stints, np.int64).reshape(-1, len(STINT))

    def stint_table(self) -> Integers:
        """All stints: int64 of shape (stints, len(STINT)); in a step of `still` they got no token."""
        rows = self.stint_rows()
        found: Integers = rows[rows[:, 0] != NOBODY]
        return found

    def still(self) -> list[int]:
        """The steps in which no sequence decodes although some may, in order."""
        rows = self.stint_rows()
        return list(rows[rows[:, 0] == NOBODY, 1].tolist())

    def chunk_table(self) -> Integers:
        """All chunks: int64 of shape (chunks, len(CHUNK)), a view."""
        return np.frombuffer(self.chunks, np.int64).reshape(-1, len(CHUNK))

    def run_table(self) -> dict[str, Integers]:
        """All runs by the column names of RUN: int64 of shape (runs,), views."""
        table = self.ran.run_table()
        return {name: table[:, column] for column, name in enumerate(RUN)}

    def step_durations(self) -> Integers:
        """Duration of each step in ns: int64 of shape (steps,), a view."""
        return np.frombuffer(self.ran.durations, np.int64)

    def filled_by_step(self) -> Integers:
        """Pages with a computed position during each step: int64 of shape (steps,)."""
        runs = self.run_table()
        grown = np.cumsum(np.frombuffer(self.ran.growth, np.int64))
        first = np.cumsum(runs["steps"]) - runs["steps"]
        filled: Integers = grown + np.repeat(runs["filled"] - grown[first], runs["steps"])
        return filled

    def held_by_step(self) -> Integers:
        """Pages held during each step: int64 of shape (steps,)."""
        runs = self.run_table()
        if not self.on_demand:
            return np.repeat(runs["pages"], runs["steps"])
        held: Integers = self.filled_by_step() + np.repeat(runs["pages"] - runs["filled"], runs["steps"])
        return held

    def cached_by_step(self) -> Integers:
        """Free pages in the prefix cache during each step: int64 of shape (steps,)."""
        runs = self.run_table()
        return np.minimum(np.repeat(runs["cached"], runs["steps"]), self.pages - self.held_by_step())

    def sha256(self) -> str:
        """Digest (hex) of the canonical form: requests, what happened to them, maximal runs, durations, filled pages.

        Two runs that differ only in how their steps were grouped have the same digest.
        """
        digest = hashlib.sha256(b"slotstep log 1\n")
        digest.update("".join(f"{r.id}\t{r.tenant}\n" for r in self.requests).encode())
        digest.update("".join(f"{reason}\n" for reason in self.reasons).encode())
        tables = [self.event_table, self.stay_table, self.stint_rows, self.chunk_table, self.maximal_runs]
        verified = [self.ran.verification_table] if self.ran.verified else []
        for part in (read() for read in (*tables, self.step_durations, self.filled_by_step, *verified)):
            digest.update(f"{part.shape}\n".encode())
            digest.update(np.ascontiguousarray(part, dtype="<i8").data)
        return digest.hexdigest()

    def maximal_runs(self) -> Integers:
        """The runs (columns RUN), merged as long as the batch stayed the same, however they were recorded."""
        return merged(self.ran.run_table(), self.run_table(), self.step_durations())
