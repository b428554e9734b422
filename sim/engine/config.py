"""The settings of one engine (EngineConfig), and which of them exclude each other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from sim.memory.pool import PagePool
from sim.policy.base import Policy
from sim.request import NO_LIMIT


@dataclass(frozen=True)
class EngineConfig:
    """Settings of one engine. Raises ValueError for a count below 1 and for values that exclude each other.

    slots               most sequences in the running batch (vLLM: max_num_seqs)
    token_budget        most positions computed by one step (vLLM: max_num_batched_tokens)
    chunked             a prompt may be cut to fit the budget; otherwise it waits for a step that takes it whole
    evict               "before" the next forward pass, or "after" it: a finished sequence then takes part in one more
    harvest             "step": a token is collected at the end of its step; "next" (only with evict "after"): at the
                        start of the following one, so that the last token of a sequence is lost
    contiguous          the cache is one rectangle: admissions pay for copying
    depth               steps in flight at once; 2 plans a step while the one before it runs
    max_active          most sequences running at once, if fewer than slots
    admit_every         least number of steps between two plans that admit a sequence, while any sequence runs
    chunk_limit         most positions that one step computes of one sequence, unless it is alone (0: no limit)
    chunk_limit_adapts  that limit is at least the sequence's share of the budget
    queue_limit         most sequences that may wait; later arrivals are rejected (None: no limit)
    swap                a preempted sequence keeps its computed positions on the host, at a cost for each direction;
                        otherwise it is recomputed
    preempt_for_slot    a more urgent request takes the slot of the victim if it can be admitted in its place
    max_model_len       longest sequence, prompt and output: an output ends there, and a prompt that leaves no room
                        for an output is rejected (None: no limit)
    """

    slots: int
    token_budget: int
    chunked: bool = True
    evict: Literal["before", "after"] = "before"
    harvest: Literal["step", "next"] = "step"
    contiguous: bool = False
    depth: int = 1
    max_active: int | None = None
    admit_every: int = 1
    chunk_limit: int = 0
    chunk_limit_adapts: bool = False
    queue_limit: int | None = None
    swap: bool = False
    preempt_for_slot: bool = False
    max_model_len: int | None = None

    def __post_init__(self) -> None:
        for name in ("slots", "token_budget", "admit_every", "max_active", "max_model_len"):
            count = getattr(self, name)
            if count is not None and count < 1:
                raise ValueError(f"{name} is {count}; expected at least 1")
        if self.harvest == "next" and self.evict != "after":
            raise ValueError("harvest 'next' needs evict 'after'")
        if self.depth not in (1, 2):
            raise ValueError(f"depth is {self.depth}; expected 1 or 2")
        if self.depth == 2 and self.evict == "after":
            raise ValueError("depth 2 needs evict 'before': it finds a finished sequence late enough")

    @cached_property
    def evict_late(self) -> bool:
        """Whether a finished sequence takes part in one step more."""
        return self.evict == "after"

    @cached_property
    def harvest_late(self) -> bool:
        """Whether a token is collected one step late."""
        return self.harvest == "next"

    @cached_property
    def most_active(self) -> int:
        """Most sequences running at once."""
        return self.slots if self.max_active is None else min(self.slots, self.max_active)

    @cached_property
    def longest(self) -> int:
        """Positions of the longest sequence, prompt and output."""
        return NO_LIMIT if self.max_model_len is None else self.max_model_len

    def check_fits(self, policy: Policy, pool: PagePool) -> None:
        """Raise ValueError for a policy or a page pool that these settings exclude."""
        if self.preempt_for_slot and not policy.order.by_urgency:
            raise ValueError("preempt_for_slot needs an order by urgency: the one driven out would be first again")
        if policy.batch_wait is not None and not (policy.admission.reserves and self.admit_every == 1):
            raise ValueError("batch_wait needs an admission rule that reserves, and an admission in every step")
        if policy.batch_wait is not None and self.chunked:
            raise ValueError("batch_wait needs prompts that are not chunked")
        if pool.remembers and self.contiguous:
            raise ValueError("a prefix cache needs pages; found a contiguous cache")
        if pool.remembers and self.swap:
            raise ValueError("swap needs an engine without a prefix cache: what is on the host is not found")
