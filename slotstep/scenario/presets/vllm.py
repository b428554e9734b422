"""The preset of vLLM: its option names, and its defaults.

The defaults depend on the memory of the GPU, or on there being none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slotstep.scenario import units
from slotstep.scenario.fields import whole
from slotstep.scenario.presets.preset import Preset, Settings, count

VERSION = "0.32.0"

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


def usable(blocks: object) -> int:
    """The pages of an engine with this number of blocks: vLLM reserves one block."""
    try:
        return whole(2)(blocks) - 1
    except ValueError as error:
        raise ValueError(f"num_gpu_blocks: {error}") from None


def read(given: Mapping[str, Any]) -> dict[str, Any]:
    """Our values of the options given under vLLM's names."""
    return {"pages": usable(given["num_gpu_blocks"])} if "num_gpu_blocks" in given else {}


def defaults(engine: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults of vLLM's server.

    The default number of slots is at most a given token budget; without chunked prefill the default token budget is
    at least max_model_len.
    """
    found = {"version": VERSION, "page_size": 16, "prefix_cache": True, **sizes(engine)}
    found["async_scheduling"] = "speculation" not in engine
    if is_cpu(engine):
        found |= {"page_size": 128, "async_scheduling": False}
    budget, max_model_len = (count(engine.get(key)) for key in ("token_budget", "max_model_len"))
    if budget:
        found["slots"] = min(found["slots"], budget)
    if max_model_len and engine.get("chunked") is False:
        found["token_budget"] = max(found["token_budget"], max_model_len)
    return found


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


def check(engine: Settings) -> None:
    """Raise ValueError, with vLLM's message, for settings with which it does not start, or which it would change."""
    if engine.admission != "optimistic":
        raise ValueError("preset: vllm needs admission: optimistic")
    budget, slots, longest = engine.token_budget, engine.slots, engine.max_model_len
    if budget < slots:
        raise ValueError(
            f"preset: vllm: max_num_batched_tokens ({budget}) must be greater than or equal to max_num_seqs ({slots})"
        )
    if longest is not None and budget < longest and not engine.chunked:
        raise ValueError(
            f"preset: vllm: max_num_batched_tokens ({budget}) is smaller than max_model_len ({longest}) "
            "without chunked prefill, which limits sequences to max_num_batched_tokens"
        )
    if engine.device is not None and engine.device.lower() == CPU:
        if engine.async_scheduling:
            raise ValueError("device: cpu runs without async_scheduling")
        if engine.device_memory is not None:
            raise ValueError("device_memory decides the defaults of a GPU; expected none beside device: cpu")


def policy(chosen: object, engine: Mapping[str, Any]) -> object:
    """Our policy for the one of the engine's options. Raises ValueError for one that vLLM does not have."""
    if chosen not in POLICIES:
        raise ValueError(f"engine.policy: found {chosen!r}; expected {' or '.join(POLICIES)} (any other: policy)")
    return chosen


PRESET = Preset("vllm", VERSION, ALIASES, ("policy",), read, defaults, policy, check)
