"""The preset of TensorRT-LLM: modelled on its documentation (1.1), not verified by logs.

A step mixes prompts and decodes within `max_num_tokens`. GUARANTEED_NO_EVICT, the default, admits a request when the
memory for its prompt and its whole limit is free; MAX_UTILIZATION when it is free for the prompt, and pauses the last
admitted when it runs short. Blocks are found again by their content; GUARANTEED_NO_EVICT does not count on that at an
admission. Waiting for larger batches is only modelled with GUARANTEED_NO_EVICT and without chunked prefill.

Sources: its LLM API reference, and github.com/NVIDIA/TensorRT-LLM, `tensorrt_llm/_torch/pyexecutor/py_executor.py`
(`_waiting_requests`) and `cpp/tensorrt_llm/batch_manager/kvCacheManager.cpp` (`getRemainingBlocksToCompletion`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slotstep.scenario.document import brief
from slotstep.scenario.fields import truth, whole
from slotstep.scenario.presets.preset import Preset, Settings, count

VERSION = "1.1"

ALIASES = {
    "max_batch_size": "slots",
    "max_num_tokens": "token_budget",
    "max_seq_len": "max_model_len",
    "tokens_per_block": "page_size",
    "max_tokens": "pages",
    "free_gpu_memory_fraction": "fit",
    "enable_chunked_prefill": "chunked",
    "enable_block_reuse": "prefix_cache",
    "disable_overlap_scheduler": "async_scheduling",
    "capacity_scheduler_policy": "admission",
    "batch_wait_timeout_iters": "batch_wait_steps",
    "batch_wait_max_tokens_ratio": "batch_wait_ratio",
}
"""TensorRT-LLM's names of our keys: of its LlmArgs, KvCacheConfig and SchedulerConfig."""

POLICIES = {"GUARANTEED_NO_EVICT": "reserve", "MAX_UTILIZATION": "optimistic"}
PAGE = 32


def read(given: Mapping[str, Any]) -> dict[str, Any]:
    """Our values of options that are not the same. Raises ValueError, with its name, for invalid ones."""
    found: dict[str, Any] = {}
    if "max_tokens" in given:
        size = count(given.get("tokens_per_block", given.get("page_size", PAGE))) or PAGE
        try:
            found["pages"] = whole(size)(given["max_tokens"]) // size
        except ValueError as error:
            raise ValueError(f"max_tokens: {error}") from None
    if "disable_overlap_scheduler" in given:
        try:
            found["async_scheduling"] = not truth(given["disable_overlap_scheduler"])
        except ValueError as error:
            raise ValueError(f"disable_overlap_scheduler: {error}") from None
    for name in ("batch_wait_timeout_iters", "batch_wait_max_tokens_ratio"):
        if given.get(name) == 0:
            found[ALIASES[name]] = None
    if "capacity_scheduler_policy" in given:
        chosen = given["capacity_scheduler_policy"]
        if chosen not in POLICIES:
            raise ValueError(f"capacity_scheduler_policy: found {brief(chosen)}; expected {' or '.join(POLICIES)}")
        found["admission"] = POLICIES[chosen]
    return found


def defaults(engine: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults of its LLM API, beside the settings given under our keys."""
    return {
        "version": VERSION,
        "slots": 2048,
        "token_budget": 8192,
        "page_size": PAGE,
        "chunked": False,
        "async_scheduling": True,
        "admission": "reserve",
        "prefix_cache": True,
    }


def policy(chosen: object, engine: Mapping[str, Any]) -> object:
    """There is no option for the order: first come, first served."""
    raise ValueError("preset: trtllm has no option for the order of the queue; expected policy")


def check(engine: Settings) -> None:
    """Raise ValueError for an admission rule that it does not have."""
    if engine.admission not in POLICIES.values():
        raise ValueError(f"preset: trtllm needs admission: {' or '.join(POLICIES.values())}")


PRESET = Preset("trtllm", VERSION, ALIASES, (), read, defaults, policy, check)
