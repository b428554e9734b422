"""The section of an engine whose passes are of one kind: a prefill of new requests goes first, and decoding waits."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from slotstep.scenario.fields import Count, Portion, Section, Seed, Truth


class Apart(Section):
    """Prefill and decode in passes of their own, as SGLang has them.

    Keys of the engine that it replaces: token_budget, chunked, admission and those of single rules.
    """

    max_prefill_tokens: Count = 16384
    chunked_prefill_size: Seed = 0
    mixed: Truth = False
    prefill_interval: Seed = 0
    prefill_max_requests: Count | None = None
    initial_ratio: Portion = 0.7
    minimum_ratio: Portion = 0.098
    decay_passes: Count = 600
    clip: Count = 4096
    ahead: Seed = 20
    preempt_by: Seed | None = None
    admission: Literal["expected", "rule"] = "expected"
    retraction: Literal["length", "priority", "latest"] = "length"

    @model_validator(mode="after")
    def consistent(self) -> Self:
        """Refuses ratios in the wrong order, and a mix without chunks."""
        if self.minimum_ratio > self.initial_ratio:
            raise ValueError(
                f"minimum_ratio is {self.minimum_ratio}; expected at most initial_ratio, {self.initial_ratio}"
            )
        if self.mixed and not self.chunked_prefill_size:
            raise ValueError("mixed needs a chunked_prefill_size")
        if self.admission == "rule" and self.chunked_prefill_size:
            raise ValueError("admission: rule takes prompts whole; expected no chunked_prefill_size")
        return self
