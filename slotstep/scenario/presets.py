"""Presets: an engine's own option names for our keys, its defaults, and the version that is modelled.

The only preset is vLLM, whose defaults depend on the memory of the GPU, or on there being none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from slotstep.scenario import units
from slotstep.scenario.fields import UnknownKeyError, whole

VERSION: Literal["0.32.0"] = "0.32.0"

ALIASES = {
    "max_num_seqs": "slots",
    "max_num_batched_tokens": "token_budget",
    "block_size": "page_size",
    "num_gpu_blocks": "pages",
    "enable_chunked_prefill": "chunked",
    "enable_prefix_caching": "prefix_cache",
    "long_prefill_token_threshold": "chunk_limit",
    "long_prefill_token_threshold_adaptive": "chunk_limit_adapts",
    "scheduler_reserve_full_isl": "reserve_full_prompt",
    "max_num_active_seqs": "max_active",
}
"""vLLM's names of our keys. num_gpu_blocks includes one reserved block, so there is one page fewer."""

DEVICE_MEMORY = "80GiB"
CPU = "cpu"
SERVER_MEMORY = 70
"""GiB from which on a GPU gets a server's defaults, unless it is an A100."""

POLICIES = ("fcfs", "priority")


def with_our_keys(engine: Mapping[str, Any], own: Iterable[str]) -> dict[str, Any]:
    """The engine section of a scenario with our keys (`own`) only, and the defaults of its preset.

    Raises ValueError for a key given under both names, for a preset's name without the preset, and for blocks that
    leave no page; UnknownKeyError for a key that is neither.
    """
    if "preset" not in engine:
        for alias in ALIASES:
            if alias in engine:
                raise ValueError(f"{alias} is a name of preset: vllm; expected {ALIASES[alias]}, or that preset")
        return dict(engine)
    known = [*own, *ALIASES]
    unknown = next((key for key in engine if key not in known), None)
    if unknown is not None:
        raise UnknownKeyError(unknown, known)
    for alias, name in written(engine).items():
        if name in engine:
            raise ValueError(f"{alias} and {name} are one setting; expected one of them")
    found = {ALIASES.get(key, key): value for key, value in engine.items()}
    if "num_gpu_blocks" in engine:
        found["pages"] = usable(engine["num_gpu_blocks"])
    return defaults(found) | found


def written(engine: Mapping[str, Any]) -> dict[str, str]:
    """The preset's names that an engine section uses, each with our key."""
    return {alias: name for alias, name in ALIASES.items() if alias in engine}


def usable(blocks: object) -> int:
    """The pages of an engine with this number of blocks: vLLM reserves one block."""
    try:
        return whole(2)(blocks) - 1
    except ValueError as error:
        raise ValueError(f"num_gpu_blocks: {error}") from None


def defaults(engine: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults of vLLM's server.

    The default number of slots is at most a given token budget; without chunked prefill the default token budget is
    at least max_model_len.
    """
    found = {"version": VERSION, "page_size": 16, "prefix_cache": True, "async_scheduling": True, **sizes(engine)}
    if is_cpu(engine):
        found |= {"page_size": 128, "async_scheduling": False}
    budget, max_model_len = (count(engine.get(key)) for key in ("token_budget", "max_model_len"))
    if budget:
        found["slots"] = min(found["slots"], budget)
    if max_model_len and engine.get("chunked") is False:
        found["token_budget"] = max(found["token_budget"], max_model_len)
    return found


def count(value: object) -> int | None:
    """A whole number from 1; None for anything else, which the section's validator reports."""
    try:
        return whole(1)(value)
    except ValueError:
        return None


def sizes(engine: Mapping[str, Any]) -> dict[str, Any]:
    """Slots and token budget by the device: a CPU, or a GPU by its memory."""
    if is_cpu(engine):
        return {"slots": 128, "token_budget": 2048}
    memory = engine.get("device_memory", DEVICE_MEMORY)
    server = units.gibibytes(units.memory(memory)) >= SERVER_MEMORY
    if "a100" in str(engine.get("device", "")).lower():
        server = False
    sizes = {"slots": 1024, "token_budget": 8192} if server else {"slots": 256, "token_budget": 2048}
    return {"device_memory": memory, **sizes}


def is_cpu(engine: Mapping[str, Any]) -> bool:
    """Whether the device is vLLM's CPU platform."""
    return str(engine.get("device", "")).lower() == CPU


def starts(slots: int, budget: int, max_model_len: int | None, chunked: bool) -> None:
    """Raise ValueError, with vLLM's message, for sizes with which it does not start."""
    if budget < slots:
        raise ValueError(
            f"preset: vllm: max_num_batched_tokens ({budget}) must be greater than or equal to max_num_seqs ({slots})"
        )
    if max_model_len is not None and budget < max_model_len and not chunked:
        raise ValueError(
            f"preset: vllm: max_num_batched_tokens ({budget}) is smaller than max_model_len ({max_model_len}) "
            "without chunked prefill, which limits sequences to max_num_batched_tokens"
        )


def move_policy(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """A scenario with the policy of a preset's engine options moved to the scenario's own key.

    Raises ValueError for a policy given twice, without the preset, or one that vLLM does not have.
    """
    engine = scenario.get("engine")
    if not isinstance(engine, Mapping) or "policy" not in engine:
        return dict(scenario)
    if "preset" not in engine:
        raise ValueError("engine.policy is a name of preset: vllm; expected policy, or that preset")
    if "policy" in scenario:
        raise ValueError("policy and engine.policy are one setting; expected one of them")
    policy = engine["policy"]
    if policy not in POLICIES:
        raise ValueError(f"engine.policy: found {policy!r}; expected {' or '.join(POLICIES)} (any other: policy)")
    kept = {key: value for key, value in engine.items() if key != "policy"}
    return {**scenario, "engine": kept, "policy": policy}
