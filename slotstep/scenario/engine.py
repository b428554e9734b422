"""The engine of a scenario: slots, memory, batching, admission, preset; and which settings exclude others."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import ValidationInfo, field_validator, model_validator

from policies.admissions import ADMISSIONS
from sim.registry import suggestion
from slotstep.scenario import document, presets
from slotstep.scenario.apart import Apart
from slotstep.scenario.fields import Chance, Choice, Count, Label, Memory, Portion, Section, Seed, Share, Truth, parts
from slotstep.scenario.speculation import Speculation
from traces.synthetic.parser import length

OF_A_PRESET = {
    "batching": "continuous",
    "evict": "before",
    "memory": "paged",
    "preemption": "recompute",
}


NOT_APART = (
    *(
        "max_active",
        "token_budget",
        "chunked",
        "admit_every",
        "batch_wait_steps",
        "batch_wait_ratio",
        "chunk_limit",
        "chunk_limit_adapts",
        "batching",
        "evict",
    ),
    *(
        "harvest",
        "preempt_for_slot",
        "preemption",
        "victim",
        "memory",
        "admission",
        "reserve_full_prompt",
        "watermark",
    ),
)
"""Keys without effect where prefill and decode are passes of their own."""
OF_A_RULE = ("admission", "reserve_full_prompt", "watermark")
"""Of these, the keys that apply if the admission rule decides."""


class RatioRule(Section):
    """The share of the running sequences' possible further tokens that has to stay free at an admission."""

    initial: Share = 0.7
    minimum: Share = 0.098
    decay_steps: Count = 600
    ahead: Seed = 20


class QuantileRule(Section):
    """The probability with which running sequences may outgrow the memory, and the distribution of outputs."""

    epsilon: Chance = 0.05
    window: Count = 1000
    every: Count = 8
    outputs: Any = None

    @field_validator("outputs")
    @classmethod
    def valid_lengths(cls, value: object) -> object:
        """A distribution of lengths, as in a synthetic workload."""
        if value is not None:
            length(value, "outputs")
        return value


class RadixRule(Section):
    """A prefix cache that is a radix tree, and which of its leaves is evicted first."""

    eviction: Literal["lru", "lfu", "fifo", "filo", "mru", "slru", "priority"] = "lru"
    keeps_least_urgent: Truth = False

    @model_validator(mode="after")
    def has_priorities(self) -> Self:
        """Refuses an option that the eviction would ignore."""
        if self.keeps_least_urgent and self.eviction != "priority":
            raise ValueError("keeps_least_urgent needs eviction: priority")
        return self


OF_STEPS = ("async_scheduling", "chunk_limit", "max_active", "max_model_len", "preempt_for_slot")
"""Keys that need continuous batching."""
RULES = ("ratio", "quantile")
"""Admission rules whose options are a section of the engine."""
OPTIMISTIC = ("reserve_full_prompt", "watermark")
"""Options of the rule `optimistic`, which are keys of the engine."""


class Engine(Section):
    """The engine section. The default admission depends on batching and memory.

    token_budget and chunked have no effect on a static batch, which is bound by slots and pages alone.
    """

    slots: Count = 64
    max_active: Count | None = None
    token_budget: Count = 2048
    chunked: Truth = True
    admit_every: Count = 1
    batch_wait_steps: Count | None = None
    batch_wait_ratio: Portion | None = None
    chunk_limit: Seed = 0
    chunk_limit_adapts: Truth = False
    max_model_len: Count | None = None
    batching: Literal["continuous", "static"] = "continuous"
    async_scheduling: Truth = False
    evict: Literal["before", "after"] = "before"
    harvest: Literal["step", "next"] = "step"
    preempt_for_slot: Truth = False
    preemption: Literal["recompute", "swap"] = "recompute"
    victim: Choice | None = None
    memory: Literal["paged", "contiguous"] = "paged"
    page_size: Count = 16
    pages: Count = 8192
    fit: Share | None = None
    admission: Choice = "optimistic"
    ratio: RatioRule | None = None
    quantile: QuantileRule | None = None
    reserve_full_prompt: Truth = True
    watermark: Share = 0.0
    prefix_cache: Truth = False
    radix: RadixRule | None = None
    share: Literal["none", "tenant", "all"] | None = None
    model: Label | None = None
    positions: Label | None = None
    warm: Label | None = None
    apart: Apart | None = None
    speculation: Speculation | None = None
    preset: Literal["vllm", "sglang", "trtllm", "vllm-v0", "s-lora"] | None = None
    version: Label | None = None
    device: Label | None = None
    device_memory: Memory | None = None
    macro: Truth = True

    @model_validator(mode="before")
    @classmethod
    def with_defaults(cls, value: object) -> object:
        """Translates a preset's keys, and adds defaults that follow from the preset and other settings."""
        if not isinstance(value, dict):
            return value
        given: dict[str, Any] = presets.with_our_keys(value, cls.model_fields)
        choice = given.get("admission")
        if isinstance(choice, Mapping) and len(choice) == 1 and (rule := next(iter(choice))) in RULES:
            given = {**given, "admission": rule, rule: choice[rule] or {}}
        elif choice in RULES:
            given = {choice: {}, **given}
        cache = given.get("prefix_cache")
        if isinstance(cache, Mapping) and list(cache) == ["radix"]:
            given = {**given, "prefix_cache": True, "radix": cache["radix"] or {}}
        elif cache == "radix":
            given = {"radix": {}, **given, "prefix_cache": True}
        reserves = given.get("batching") == "static" or given.get("memory") == "contiguous"
        implied = {"admission": "reserve" if reserves else "optimistic"}
        if given.get("prefix_cache") is True:
            implied["share"] = "tenant"
        return implied | given

    @field_validator("version")
    @classmethod
    def modelled_version(cls, value: str | None, info: ValidationInfo) -> str | None:
        """The version that the preset models."""
        made = presets.chosen(info.data)
        if value is not None and made is not None and value != made.version:
            raise ValueError(f"found {document.brief(value)}; expected {made.version!r}")
        return value

    @field_validator("warm")
    @classmethod
    def place_cache(cls, value: str | None, info: ValidationInfo) -> str | None:
        """Makes the cache file absolute against the scenario's folder."""
        if value is None:
            return None
        folder: Path = (info.context or {}).get("folder", Path())
        return os.path.abspath(folder / Path(value).expanduser())

    @field_validator("admission")
    @classmethod
    def known_rule(cls, value: str | dict[str, Any]) -> str | dict[str, Any]:
        """A rule that exists; the options of `optimistic` are keys of the engine."""
        name, options = parts(value)
        if not ADMISSIONS.knows(name):
            raise ValueError(f"found {document.brief(name)}; {suggestion(name, ADMISSIONS.names())}")
        if name == "optimistic" and options:
            raise ValueError(f"found options; expected {' and '.join(OPTIMISTIC)} as keys of the engine")
        return value

    @property
    def rule(self) -> tuple[str, dict[str, Any]]:
        """The name of the admission rule, and its options as the scenario has them."""
        name, options = parts(self.admission)
        if name == "optimistic":
            return name, {key: getattr(self, key) for key in OPTIMISTIC}
        return name, dict(getattr(self, name)) if name in RULES else options

    @model_validator(mode="after")
    def consistent(self) -> Self:
        """Refuses settings that contradict each other or that the mode would ignore."""
        if self.preset is None and (self.version or self.device or self.device_memory):
            raise ValueError("version, device and device_memory need a preset")
        for key, value in OF_A_PRESET.items() if self.preset else ():
            if getattr(self, key) != value:
                raise ValueError(f"preset: {self.preset} needs {key}: {value}")
        if self.preset is not None and self.victim is not None:
            raise ValueError(f"preset: {self.preset} has a victim of its own; expected none beside it")
        if self.preset is not None:
            presets.PRESETS[self.preset].check(self)
        if self.max_active is not None and self.max_active > self.slots:
            raise ValueError(f"max_active is {self.max_active}; expected at most as many as slots, {self.slots}")
        if self.fit is not None and "pages" in self.model_fields_set:
            raise ValueError("found pages beside fit; expected one of the two")
        if self.harvest == "next" and self.evict != "after":
            raise ValueError("harvest: next needs evict: after")
        if self.batching == "static" and self.evict != "before":
            raise ValueError("evict: after needs batching: continuous (a static batch ends as one)")
        if self.async_scheduling and self.evict != "before":
            raise ValueError("async_scheduling needs evict: before (it finds a finished request late enough)")
        if self.admission != "reserve" and self.batching == "static":
            raise ValueError("batching: static needs admission: reserve")
        if self.admission != "reserve" and self.memory == "contiguous":
            raise ValueError("memory: contiguous needs admission: reserve")
        if self.apart is not None:
            self.apart_alone()
        if self.speculation is not None:
            self.can_speculate()
        self.not_ignored()
        return self

    def can_speculate(self) -> None:
        """Raise ValueError for a setting that speculative decoding excludes."""
        if self.apart is not None:
            raise ValueError("speculation needs steps that mix prompts and decodes; found passes of one kind (apart)")
        wanted = {"batching": "continuous", "evict": "before", "memory": "paged", "async_scheduling": False}
        for key, value in wanted.items():
            if getattr(self, key) != value:
                raise ValueError(f"speculation needs {key}: {str(value).lower()}")

    def apart_alone(self) -> None:
        """Raise ValueError for a setting that an engine with passes of one kind does not have."""
        by_rule = self.apart is not None and self.apart.admission == "rule"
        for key in NOT_APART:
            if by_rule and key in OF_A_RULE:
                continue
            if getattr(self, key) != type(self).model_fields[key].default:
                raise ValueError(f"{key} does not apply to an engine with passes of one kind (apart)")

    @property
    def modelled(self) -> str | None:
        """The engine whose decisions a preset makes, with its version: "vllm 0.32.0"."""
        return f"{self.preset} {self.version}" if self.preset else None

    def not_ignored(self) -> None:
        """Raise ValueError for a setting that has no effect because of another one."""
        if self.batching == "static":
            for key in (*OF_STEPS, "batch_wait_steps", "batch_wait_ratio", "prefix_cache"):
                if getattr(self, key):
                    raise ValueError(f"{key} needs batching: continuous")
            if self.admit_every > 1:
                raise ValueError("admit_every needs batching: continuous")
        for rule in RULES:
            if getattr(self, rule) is not None and self.admission != rule:
                raise ValueError(f"{rule} needs admission: {rule}")
        unused = {"watermark": bool(self.watermark), "reserve_full_prompt": not self.reserve_full_prompt}
        for key, given in unused.items() if self.admission != "optimistic" else ():
            if given:
                raise ValueError(f"{key} needs admission: optimistic")
        if self.admission == "reserve" and (self.preemption == "swap" or self.victim is not None):
            key = "preemption: swap" if self.preemption == "swap" else "victim"
            raise ValueError(f"{key} needs admission: optimistic")
        if bool(self.batch_wait_steps) != bool(self.batch_wait_ratio):
            raise ValueError("batch_wait_steps and batch_wait_ratio: one without the other has no effect")
        if self.chunk_limit_adapts and not self.chunk_limit and self.preset is None:
            raise ValueError("chunk_limit_adapts needs a chunk_limit")
        if self.prefix_cache and self.memory == "contiguous":
            raise ValueError("prefix_cache needs memory: paged")
        if not self.prefix_cache:
            for key in ("radix", "share", "model", "positions", "warm"):
                if getattr(self, key) is not None:
                    raise ValueError(f"{key} needs prefix_cache: true")
        for key in ("model", "positions", "warm") if self.radix is not None else ():
            if getattr(self, key) is not None:
                raise ValueError(f"{key} needs a prefix cache of blocks; found radix, which no other run reads")
        if self.warm and self.share == "none":
            raise ValueError("warm needs share: tenant or all (with none, no request finds pages of another)")
