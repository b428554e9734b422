"""Replays a parity case (a list of requests and an engine's options) on our scheduler, step by step.

The clock counts steps or, if the case has a step cost, seconds by that cost. docs/parity.md has the log format.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from pydantic import ConfigDict, model_validator

from sim.engine.batch import Batch
from sim.engine.scheduler import Scheduler
from sim.log.events import Kind
from sim.request import SECOND, Request
from sim.sequence import Sequence
from slotstep.runs import build
from slotstep.runs.loading import parse
from slotstep.scenario.fields import Count, Label, Section, Seed, Whole

ENGINE = {
    "max_num_seqs": 8,
    "max_num_batched_tokens": 2048,
    "max_model_len": 4096,
    "block_size": 16,
    "num_gpu_blocks": 1000,
    "enable_prefix_caching": False,
    "enable_chunked_prefill": True,
    "policy": "fcfs",
    "long_prefill_token_threshold": 0,
    "long_prefill_token_threshold_adaptive": False,
    "scheduler_reserve_full_isl": True,
    "watermark": 0.0,
    "max_num_active_seqs": None,
    "async_scheduling": False,
}
"""The defaults of a case's options."""

Line = dict[str, Any]


class CaseRequest(Section):
    """One request of a case."""

    id: Label
    prompt_token_ids: tuple[Seed, ...] | None = None
    prompt_len: Count | None = None
    max_tokens: Count
    arrival_step: Seed | None = None
    arrival_time: float | None = None
    priority: Whole = 0

    @model_validator(mode="after")
    def one_of_each(self) -> Self:
        """A prompt and an arrival, each given in one way."""
        if (self.prompt_token_ids is None) == (self.prompt_len is None):
            raise ValueError("expected one of prompt_token_ids and prompt_len")
        if self.prompt_token_ids == ():
            raise ValueError("a prompt has at least one token")
        if (self.arrival_step is None) == (self.arrival_time is None):
            raise ValueError("expected one of arrival_step and arrival_time")
        return self

    def request(self) -> Request:
        """The kernel's request."""
        tokens = self.prompt_token_ids
        return Request(
            self.id,
            self.arrival_step or round((self.arrival_time or 0) * SECOND),
            self.prompt_len or len(tokens or ()),
            self.max_tokens,
            priority=self.priority,
            tokens=tokens,
        )


class Cost(Section):
    """Seconds of a step: t0, and per scheduled token, scheduled request and token of context after the step."""

    t0: float
    t_tok: float
    t_seq: float
    t_ctx: float


class Config(Section):
    """The engine's options by its own names, and the step cost if its clock is simulated."""

    model_config = ConfigDict(extra="allow")

    cost: Cost | None = None
    max_steps: object = None

    @property
    def engine(self) -> dict[str, Any]:
        """The engine's options, every default explicit."""
        return ENGINE | (self.model_extra or {})


class Case(Section):
    """The input of a replay."""

    config: Config
    requests: tuple[CaseRequest, ...]

    @model_validator(mode="after")
    def arrivals_fit(self) -> Self:
        """Every request arrives in the unit of the clock, steps or seconds, and has a unique id."""
        key = "arrival_step" if self.config.cost is None else "arrival_time"
        names: set[str] = set()
        for place, asked in enumerate(self.requests):
            if getattr(asked, key) is None:
                raise ValueError(f"requests.{place}.{key}: missing (config.cost says in what requests arrive)")
            if asked.id in names:
                raise ValueError(f"requests.{place}.id: {asked.id!r} is there twice")
            names.add(asked.id)
        return self

    def scheduler(self, source: str) -> Scheduler:
        """Our scheduler with the options of `config`. Raises BadInput, beginning with `source`, for invalid ones."""
        section = {"preset": "vllm", **self.config.engine}
        if section["enable_prefix_caching"] is True:
            section["share"] = "all"
        mapping = {"workload": {"requests": [{"output": 1}]}, "cost": {"unit": "1ns"}, "engine": section}
        return build.stepwise(parse(mapping, source=f"{source}: config"))


class InFlight(NamedTuple):
    """A step whose results have not been collected: its number, its batch, and the requests that get a token."""

    step: int
    batch: Batch
    sampled: list[str]


@dataclass
class Replay:
    """The state of a replay."""

    case: Case
    scheduler: Scheduler
    step: int = 0
    clock: float = 0.0
    in_flight: deque[InFlight] = field(default_factory=deque)
    admitted: set[str] = field(default_factory=set)
    ended: bool = False

    def __post_init__(self) -> None:
        self.cost = self.case.config.cost
        places = range(len(self.case.requests))
        self.due = deque(sorted(places, key=lambda place: (self.arrival(self.case.requests[place]), place)))

    def arrival(self, asked: CaseRequest) -> float:
        """When a request arrives: a step, or seconds."""
        arrival = asked.arrival_step if self.cost is None else asked.arrival_time
        assert arrival is not None
        return arrival

    def lines(self) -> Iterator[Line]:
        """A line for every step with activity, then for results collected after the last plan."""
        while (arrived := self.next_arrivals()) is not None:
            line = self.planned(arrived)
            if line["scheduled"] or arrived or "updated_step" in line:
                yield line
            self.step += 1
        while self.in_flight:
            yield {"type": "drain", "step": self.step, **self.results()}

    def next_arrivals(self) -> list[str] | None:
        """Submit the requests due now, or the next ones if nothing is unfinished; None at the end.

        The engine plans once more after its last request has ended.
        """
        arrived = self.submit_due()
        if arrived or self.scheduler.busy:
            return arrived
        if not self.due:
            return [] if self.ended else None
        arrival = self.arrival(self.case.requests[self.due[0]])
        if self.cost is None:
            self.step = int(arrival)
        else:
            self.clock = max(self.clock, arrival)
        return self.submit_due()

    def submit_due(self) -> list[str]:
        """Submit the requests that are due."""
        arrived = []
        now = self.step if self.cost is None else self.clock
        while self.due and self.arrival(self.case.requests[self.due[0]]) <= now:
            asked = self.case.requests[self.due.popleft()]
            self.scheduler.submit(asked.request(), self.step)
            arrived.append(asked.id)
        return arrived

    def planned(self, arrived: list[str]) -> Line:
        """Plan one step, collect the results that are due, and return the line."""
        scheduler = self.scheduler
        before = len(scheduler.log.events)
        batch = scheduler.plan(self.step)
        work = scheduler.assignments(batch) if batch.tokens else []
        line = {"type": "step", "step": self.step, "arrived": arrived}
        line |= self.decisions(work, before)
        self.in_flight.append(InFlight(self.step, batch, sampled(batch, work)))
        if scheduler.config.depth == 1:
            line |= self.results()
            del line["updated_step"]
        elif len(self.in_flight) > 1:
            line |= self.results()
        else:
            line |= {"sampled": [], "finished": [], "free_blocks_after": scheduler.pool.free}
        if self.cost is not None:
            self.clock += duration(self.cost, work)
        return line

    def decisions(self, work: list[tuple[Sequence, int, int]], before: int) -> Line:
        """The decisions of a plan, and the state after it."""
        scheduler = self.scheduler
        admitted = [(name, found) for kind, name, found in self.events_since(before) if kind == Kind.ADMITTED]
        new = [name for name, _ in admitted if name not in self.admitted]
        line = {
            "scheduled": {name(seq): tokens for seq, _, tokens in work},
            "computed_before": {name(seq): start for seq, start, _ in work},
            "new": new,
            "resumed": [name for name, _ in admitted if name in self.admitted],
            "preempted": [name for kind, name, _ in self.events_since(before) if kind == Kind.PREEMPTED],
            "hit_tokens": {name: found for name, found in admitted if found},
            "running": [name(seq) for seq in scheduler.state.running.values()],
            "waiting": [name(seq) for seq in scheduler.policy.order],
            "blocks": {name(seq): self.pages(seq) for seq in scheduler.state.running.values()},
            "free_blocks": scheduler.pool.free,
        }
        self.admitted.update(new)
        return line

    def pages(self, seq: Sequence) -> int:
        """Pages that a running sequence holds."""
        computed = seq.positions(self.scheduler.state.decoders.step)
        return self.scheduler.pool.pages_for(computed)

    def results(self) -> Line:
        """Collect the results of the oldest step in flight."""
        step, batch, yields = self.in_flight.popleft()
        before = len(self.scheduler.log.events)
        if batch.tokens:
            self.scheduler.commit(batch, step + 1, array("q", [1]))
        finished = [name for kind, name, _ in self.events_since(before) if kind == Kind.FINISHED]
        self.ended = bool(finished)
        self.scheduler.evict_finished(step + 1)
        free = self.scheduler.pool.free
        return {"updated_step": step, "sampled": yields, "finished": finished, "free_blocks_after": free}

    def events_since(self, before: int) -> list[tuple[int, str, int]]:
        """(kind, request, value) of the events written since the log had that length."""
        log = self.scheduler.log
        new = array("q", bytes(log.events[before:]))
        return [(new[at + 1], log.requests[new[at + 2]].id, new[at + 3]) for at in range(0, len(new), 4)]


def replay(case: Case, source: str = "case") -> Iterator[Line]:
    """The decisions of our scheduler, a line a step. Raises BadInput for invalid options."""
    return Replay(case, case.scheduler(source)).lines()


def name(seq: Sequence) -> str:
    """A request's id."""
    return seq.request.id


def sampled(batch: Batch, work: list[tuple[Sequence, int, int]]) -> list[str]:
    """The requests that get a token from a planned step: decoding ones, and those whose prefill ends."""
    others = {seq.index for seq, _, _ in batch.work}
    caught_up = {seq.index for seq, _ in batch.yields}
    return [name(seq) for seq, _, _ in work if seq.index in caught_up or seq.index not in others]


def duration(cost: Cost, work: list[tuple[Sequence, int, int]]) -> float:
    """Seconds of a step."""
    tokens = sum(count for _, _, count in work)
    context = sum(start + count for _, start, count in work)
    return cost.t0 + cost.t_tok * tokens + cost.t_seq * len(work) + cost.t_ctx * context
