"""Replays the requests of a parity case of SGLang on our scheduler, pass by pass of the engine's event loop.

docs/parity.md has the log format.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sim.engine.apart.admission import OutOfMemoryError
from sim.engine.apart.batch import ApartBatch
from sim.engine.apart.scheduler import ApartScheduler
from sim.engine.apart.sequence import ApartSequence
from sim.log.events import Kind
from sim.request import Request

Line = dict[str, Any]

DIED = "Out of memory. Try to lower your batch size."
"""What the engine says where a prefill that must go on does not fit."""


class InFlight(NamedTuple):
    """A pass whose results have not been collected: its batch, and those who may get a token, each with its stay."""

    batch: ApartBatch
    members: list[tuple[ApartSequence, int]]


@dataclass
class Replay:
    """The state of a replay; `due` are the requests to come: (pass of arrival, request)."""

    scheduler: ApartScheduler
    due: deque[tuple[int, Request]]
    step: int = 0
    in_flight: deque[InFlight] = field(default_factory=deque)

    def lines(self) -> Iterator[Line]:
        """A line for every pass; the engine makes one more when it has become idle."""
        idle = True
        while self.due or not idle:
            if idle:
                self.step = max(self.step, self.due[0][0])
            arrived = self.submit_due()
            idle = self.scheduler.idle
            try:
                line = self.planned(arrived)
            except OutOfMemoryError:
                yield {"type": "error", "msg": DIED, "step": self.step}
                return
            if idle:
                line["kind"] = "idle"
            yield line
            self.step += 1

    def submit_due(self) -> list[list[Any]]:
        """Submit the requests that are due: [id, most tokens it may produce] of each."""
        arrived = []
        while self.due and self.due[0][0] <= self.step:
            request = self.due.popleft()[1]
            seq = self.scheduler.submit(request, self.step)
            assert isinstance(seq, ApartSequence), f"{request.id}: {self.scheduler.complaint}"
            arrived.append([request.id, seq.limit])
        return arrived

    def planned(self, arrived: list[list[Any]]) -> Line:
        """Plan one pass, collect the results that are due, and return the line."""
        scheduler, state, pool = self.scheduler, self.scheduler.state, self.scheduler.pool
        before = 0 if pool.use is None else pool.use.evictions
        ratio = state.ratio.current
        batch = scheduler.plan(self.step)
        if not scheduler.idle or batch.tokens:
            ratio = state.ratio.current
        decoders = batch.beside or (list(state.members.running.values()) if batch.decoding else [])
        decoding = [name(seq) for seq in decoders]
        prefills = batch.prefills
        kind = {(True, True): "mixed", (True, False): "extend", (False, True): "decode", (False, False): "none"}
        line = {
            "type": "step",
            "step": self.step,
            "arrived": arrived,
            "kind": kind[bool(prefills), bool(decoding)],
            "extend": [[name(seq), start, tokens] for seq, start, tokens in prefills],
            "decode": decoding,
            "chunked": None if state.members.chunked is None else name(state.members.chunked),
            "waiting": [seq.request.id for seq in scheduler.policy.order],
            "running": [name(seq) for seq in state.members.running.values()],
            "full": state.gate.full,
            "ratio": round(ratio, 9),
            "avail": pool.avail,
            "evictable": pool.evictable,
            "protected": pool.protected,
            "evicted": 0 if pool.use is None else (pool.use.evictions - before) * pool.page_size,
            "retracted": [name(seq) for seq in batch.retracted],
            "preempted": [name(seq) for seq in batch.displaced],
            "aborted": [name(seq) for seq in batch.aborted],
        }
        members = [seq for seq, _, _ in prefills if seq is not state.members.chunked] + decoders
        self.in_flight.append(InFlight(batch, [(seq, seq.serial) for seq in members]))
        sampled: list[str] = []
        finished: list[str] = []
        if len(self.in_flight) == scheduler.config.depth:
            sampled, finished = self.results()
        return line | {
            "sampled": sampled,
            "finished": finished,
            "avail_after": pool.avail,
            "evictable_after": pool.evictable,
            "ratio_after": round(state.ratio.current, 9),
        }

    def results(self) -> tuple[list[str], list[str]]:
        """Collect the results of the oldest pass in flight: who gets a token, and who ends."""
        batch, members = self.in_flight.popleft()
        sampled = [name(seq) for seq, stay in members if seq.serial == stay and not seq.ended]
        log = self.scheduler.log
        before = len(log.events)
        if batch.tokens:
            self.scheduler.commit(batch, self.step + 1, array("q", [1]))
        new = array("q", bytes(log.events[before:]))
        ended = [log.requests[new[at + 2]].id for at in range(0, len(new), 4) if new[at + 1] == Kind.FINISHED]
        return sampled, ended


def name(seq: ApartSequence) -> str:
    """A request's id."""
    return seq.request.id
