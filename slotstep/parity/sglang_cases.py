"""A parity case of SGLang: its requests and the engine's options, as a scheduler of ours takes them.

docs/parity.md has the format.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from random import Random
from typing import Any, Literal, Self

from pydantic import model_validator

from policies.shuffle import Shuffle
from sim.engine.apart.scheduler import ApartScheduler
from sim.policy.base import Policy
from sim.request import Patience, Request
from slotstep.parity.sglang_replay import Line, Replay
from slotstep.runs import build
from slotstep.runs.loading import parse
from slotstep.runs.policy import admission, order
from slotstep.scenario.fields import Count, Label, Section, Seed, Truth, Whole

EOS = 7
FIRST_UNIQUE, FIRST_OUTPUT = 1_000_000_000, 10_000_000
"""Tokens of prompts of which only the length is given, and of outputs, begin here, by a step for each request."""


class CaseRequest(Section):
    """One request of a case."""

    id: Label
    prompt_runs: tuple[tuple[Seed, Count], ...] | None = None
    prompt_token_ids: tuple[Seed, ...] | None = None
    prompt_len: Count | None = None
    max_new_tokens: Count
    output_len: Count | None = None
    ignore_eos: Truth = True
    arrival_step: Seed = 0
    priority: Whole = 0

    @model_validator(mode="before")
    @classmethod
    def runs_as_tuples(cls, value: object) -> object:
        """Lists of JSON as the tuples that they stand for."""
        if isinstance(value, dict):
            lists = {
                key: value[key] for key in ("prompt_runs", "prompt_token_ids") if isinstance(value.get(key), list)
            }
            return value | {
                key: tuple(tuple(each) if isinstance(each, list) else each for each in given)
                for key, given in lists.items()
            }
        return value

    @model_validator(mode="after")
    def one_prompt(self) -> Self:
        """A prompt, given in one way, and an output within its limit."""
        given = [each for each in (self.prompt_runs, self.prompt_token_ids, self.prompt_len) if each is not None]
        if len(given) != 1 or not given[0]:
            raise ValueError("expected one of prompt_runs, prompt_token_ids and prompt_len")
        if self.output_len is not None and self.output_len > self.max_new_tokens:
            raise ValueError(
                f"output_len is {self.output_len}; expected at most max_new_tokens, {self.max_new_tokens}"
            )
        return self

    def prompt(self, place: int) -> list[int]:
        """The tokens of the prompt of the request at a place."""
        if self.prompt_len is not None:
            first = FIRST_UNIQUE + 1_000_000 * place
            return list(range(first, first + self.prompt_len))
        if self.prompt_runs is not None:
            return [token for first, count in self.prompt_runs for token in range(first, first + count)]
        return list(self.prompt_token_ids or ())

    def request(self, place: int, low_first: bool) -> Request:
        """The kernel's request at a place; its priority is the smaller the more urgent."""
        prompt = self.prompt(place)
        count = self.max_new_tokens if self.ignore_eos else (self.output_len or self.max_new_tokens)
        first = FIRST_OUTPUT + 100_000 * place
        outputs = list(range(first, first + count))
        if not self.ignore_eos:
            outputs[-1] = EOS
        return Request(
            self.id,
            self.arrival_step,
            len(prompt),
            count,
            declared=self.max_new_tokens,
            priority=self.priority if low_first else -self.priority,
            tokens=(*prompt, *outputs),
            spoken=count,
            patience=Patience(ignore_eos=self.ignore_eos),
        )


class Config(Section):
    """The engine's options by the names of its logs; `max_steps` is a limit of the logger."""

    schedule_policy: Label = "fcfs"
    page_size: Count = 1
    kv_tokens: Count = 4096
    context_len: Count = 4096
    max_running_requests: Count = 32
    max_prefill_tokens: Count = 16384
    chunked_prefill_size: Whole | None = -1
    enable_mixed_chunk: Truth = False
    schedule_conservativeness: float = 1.0
    disable_radix_cache: Truth = False
    radix_eviction_policy: Label = "lru"
    overlap: Truth = False
    prefill_max_requests: Count | None = None
    enable_priority_scheduling: Truth = False
    schedule_low_priority_values_first: Truth = False
    priority_scheduling_preemption_threshold: Seed = 10
    prefill_decode_interval: Seed | None = None
    retraction_policy: Literal["length", "priority"] = "length"
    seed: Seed = 0
    max_steps: object = None

    @property
    def engine(self) -> dict[str, Any]:
        """The engine section of a scenario, under SGLang's names."""
        given = self.model_dump(exclude={"seed", "max_steps", "schedule_low_priority_values_first"})
        if not self.enable_priority_scheduling:
            del given["priority_scheduling_preemption_threshold"]
        eviction = given.pop("radix_eviction_policy")
        if not self.disable_radix_cache:
            keeps = self.schedule_low_priority_values_first and eviction == "priority"
            given |= {"radix": {"eviction": eviction, "keeps_least_urgent": keeps}, "share": "all"}
        if self.chunked_prefill_size is None or self.chunked_prefill_size <= 0:
            given |= {"chunked_prefill_size": -1, "enable_mixed_chunk": False}
        return {"preset": "sglang", **given}


class Case(Section):
    """The input of a replay."""

    config: Config
    requests: tuple[CaseRequest, ...]

    @model_validator(mode="before")
    @classmethod
    def requests_as_tuple(cls, value: object) -> object:
        """A list of JSON as the tuple that it stands for."""
        if isinstance(value, dict) and isinstance(value.get("requests"), list):
            return value | {"requests": tuple(value["requests"])}
        return value

    @model_validator(mode="after")
    def names_differ(self) -> Self:
        """Every request has a unique id."""
        names: set[str] = set()
        for place, asked in enumerate(self.requests):
            if asked.id in names:
                raise ValueError(f"requests.{place}.id: {asked.id!r} is there twice")
            names.add(asked.id)
        return self

    def scheduler(self, source: str) -> ApartScheduler:
        """Our scheduler with the options of `config`. Raises BadInput, beginning with `source`, for invalid ones."""
        mapping = {
            "workload": {"requests": [{"output": 1}]},
            "cost": {"unit": "1ns"},
            "engine": self.config.engine,
        }
        scenario = parse(mapping, source=f"{source}: config")
        engine = scenario.engine
        shuffled = self.config.schedule_policy == "random"
        queue = Shuffle(Random(self.config.seed)) if shuffled else order(scenario)
        assert engine.apart is not None
        with scenario.blamed("engine: "):
            return ApartScheduler(
                Policy(queue, admission(scenario)),
                build.memory(engine, engine.pages, engine.page_size),
                build.apart_config(scenario, engine.apart),
            )

    def due(self) -> deque[tuple[int, Request]]:
        """(pass of arrival, request) of all requests, in order of arrival."""
        low_first = self.config.schedule_low_priority_values_first
        arrivals = [
            (asked.arrival_step, asked.request(place, low_first)) for place, asked in enumerate(self.requests)
        ]
        return deque(sorted(arrivals, key=lambda each: each[0]))


def replay(case: Case, source: str = "case") -> Iterator[Line]:
    """The decisions of our scheduler, a line a pass. Raises BadInput for invalid options."""
    return Replay(case.scheduler(source), case.due()).lines()
