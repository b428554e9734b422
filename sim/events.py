"""The event log: the only output of a run. Flat integer arrays, written in order, never read by the scheduler.

Three kinds of record: events (something happened to a request), chunks (a sequence that was in a step
without simply decoding one token) and runs (steps with the same batch, back to back, with each one's
duration). Who decodes in a step follows from the events: every running sequence without a chunk there.
Knows no metric; see `sim.metrics`.
"""

from __future__ import annotations

import hashlib
from array import array
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from sim.request import Nanoseconds, Request

Integers = NDArray[np.int64]


class Kind(IntEnum):
    """What happened to a request; the event's value in brackets."""

    QUEUED = 0
    REJECTED = 1
    """[index of the reason]"""
    ADMITTED = 2
    """again after each preemption"""
    FIRST_TOKEN = 3
    PAUSED = 4
    """a decoding sequence gets no token from here on, for want of budget"""
    RESUMED = 5
    """its next token, after steps without one [nanoseconds since the token before]"""
    PREEMPTED = 6
    """[computed positions thrown away]"""
    LOST = 7
    """generated, but never collected: its last token"""
    FINISHED = 8
    """[tokens delivered]"""
    RELEASED = 9
    """slot and pages are free again"""


class Reason(IntEnum):
    """Why the admission pass of a step ended with someone still waiting."""

    NO_DEMAND = 0
    NO_BUDGET = 1
    NO_MEMORY = 2
    BLOCKED = 3
    LIMITED = 4


EVENT = ("time", "kind", "request", "value")
CHUNK = ("step", "request", "start", "tokens")
RUN = (
    "start",  # ns
    "steps",
    "decode",  # slots that yield one new token a step
    "prefill",  # slots that compute prompt tokens
    "recomputed",  # slots that compute anything a preemption had thrown away
    "held",  # slots whose sequence has finished, and empty slots of a closed static batch
    "no_budget",  # slots whose sequence got nothing
    "reason",  # of the empty slots that someone waits for
    "tokens",  # positions computed a step
    "redone",  # of these, positions that an earlier step had computed
    "padding",  # positions computed for nothing: prompts padded to the longest
    "context",  # cached positions the decoding sequences read, at the first step
    "live",  # positions with a token during the first step, those it computes included
    "filled",  # pages with a live position during the first step
    "pages",  # pages held during the first step
)


class EventLog:
    """What happened, in integers; `slots`, `pages` and `page_size` say of what.

    `on_demand`: pages are taken when their first position is computed, so that pages held grow with pages
    filled during a run; else a sequence holds all its pages from admission on.
    """

    def __init__(self, slots: int, pages: int, page_size: int, on_demand: bool) -> None:
        self.slots = slots
        self.pages = pages
        self.page_size = page_size
        self.on_demand = on_demand
        self.requests: list[Request] = []
        self.reasons: list[str] = []
        self.events = array("q")
        self.chunks = array("q")
        self.runs = array("q")
        self.durations = array("q")
        self.growth = array("q")
        self.ended = 0

    @property
    def steps(self) -> int:
        """Steps run so far."""
        return len(self.durations)

    def add(self, request: Request) -> int:
        """Register a request; returns the index that its events carry."""
        self.requests.append(request)
        return len(self.requests) - 1

    def event(self, now: Nanoseconds, kind: Kind, index: int, value: int = 0) -> None:
        """Something happened to request `index`."""
        self.events.extend((now, kind, index, value))

    def reject(self, now: Nanoseconds, index: int, reason: str) -> None:
        """A request was turned away."""
        if reason not in self.reasons:
            self.reasons.append(reason)
        self.event(now, Kind.REJECTED, index, self.reasons.index(reason))
        self.ended += 1

    def chunk(self, index: int, start: int, tokens: int) -> None:
        """In the next step, request `index` computes `tokens` positions after `start` (0: it got no budget)."""
        self.chunks.extend((len(self.durations), index, start, tokens))

    def run(self, row: tuple[int, ...], durations: array[Nanoseconds], growth: array[int]) -> None:
        """Steps with the same batch: a row of RUN, each step's duration and the pages it began to fill.

        growth[0] is 0: what the first step fills is in the row.
        """
        self.runs.extend(row)
        self.durations.extend(durations)
        self.growth.extend(growth)

    def event_table(self) -> Integers:
        """All events, one row each, columns EVENT: a view, no copy."""
        return np.frombuffer(self.events, np.int64).reshape(-1, len(EVENT))

    def chunk_table(self) -> Integers:
        """All chunks, one row each, columns CHUNK: a view, no copy."""
        return np.frombuffer(self.chunks, np.int64).reshape(-1, len(CHUNK))

    def run_table(self) -> dict[str, Integers]:
        """All runs by the column names of RUN: views, no copy."""
        table = np.frombuffer(self.runs, np.int64).reshape(-1, len(RUN))
        return {name: table[:, column] for column, name in enumerate(RUN)}

    def step_durations(self) -> Integers:
        """Nanoseconds of each step: a view, no copy."""
        return np.frombuffer(self.durations, np.int64)

    def filled_by_step(self) -> Integers:
        """Pages with a live position during each step."""
        runs = self.run_table()
        grown = np.cumsum(np.frombuffer(self.growth, np.int64))
        first = np.cumsum(runs["steps"]) - runs["steps"]
        filled: Integers = grown + np.repeat(runs["filled"] - grown[first], runs["steps"])
        return filled

    def sha256(self) -> str:
        """Digest of the canonical form: requests, events, chunks, maximal runs, durations, filled pages.

        Two runs that differ only in how their steps were grouped have the same digest.
        """
        digest = hashlib.sha256(b"slotstep log 1\n")
        digest.update("".join(f"{r.id}\t{r.tenant}\n" for r in self.requests).encode())
        digest.update("".join(f"{reason}\n" for reason in self.reasons).encode())
        parts = (self.event_table(), self.chunk_table(), self.maximal_runs(), self.step_durations())
        for part in (*parts, self.filled_by_step()):
            digest.update(f"{part.shape}\n".encode())
            digest.update(part.astype("<i8").tobytes())
        return digest.hexdigest()

    def maximal_runs(self) -> Integers:
        """The runs (columns RUN), each as long as its batch stayed the same, however they were recorded."""
        table = np.frombuffer(self.runs, np.int64).reshape(-1, len(RUN))
        if not len(table):
            return table
        runs = self.run_table()
        ends = np.cumsum(self.step_durations())
        last = np.cumsum(runs["steps"]) - 1
        lasted = np.diff(ends[last], prepend=0)
        grown = {"context": runs["decode"] * runs["steps"], "live": runs["tokens"] * runs["steps"]}
        joined = runs["start"][1:] == (runs["start"] + lasted)[:-1]
        for name in RUN:
            if name in grown:
                joined &= runs[name][1:] == (runs[name] + grown[name])[:-1]
            elif name not in ("start", "steps", "filled", "pages"):
                joined &= runs[name][1:] == runs[name][:-1]
        first = np.flatnonzero(np.concatenate(([True], ~joined)))
        merged = table[first].copy()
        merged[:, RUN.index("steps")] = np.add.reduceat(runs["steps"], first)
        return merged
