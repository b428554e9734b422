"""The preset of vLLM's V0 engine (0.7.3), without chunked prefill: modelled on its source, not verified by logs.

While a waiting prompt fits, a step computes prompts and nothing decodes. A prompt fits if its blocks are free beside
a watermark of 1%. Where a decode finds no block, the last admitted is preempted and recomputed, first in the queue.

Sources: github.com/vllm-project/vllm at v0.7.3, `vllm/core/scheduler.py` (`_schedule_default`, `_schedule_prefills`,
`_schedule_running`), `vllm/core/block_manager.py` (watermark), and `vllm/config.py` (defaults).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slotstep.scenario.presets.preset import Preset, Settings, count

VERSION = "0.7.3"

ALIASES = {
    "max_num_seqs": "slots",
    "block_size": "page_size",
    "num_gpu_blocks": "pages",
    "max_num_batched_tokens": "apart.max_prefill_tokens",
}
"""vLLM's names of our keys."""

POLICIES = ("fcfs",)
LEAST_BUDGET = 2048


def read(given: Mapping[str, Any]) -> dict[str, Any]:
    """All values are the same."""
    return {}


def defaults(engine: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults of its server: a prefill takes as many tokens as the longest request has, and 2048 at least."""
    longest = count(engine.get("max_model_len")) or 0
    return {
        "version": VERSION,
        "slots": 256,
        "page_size": 16,
        "admission": "optimistic",
        "watermark": 0.01,
        "apart": {
            "admission": "rule",
            "max_prefill_tokens": max(LEAST_BUDGET, longest),
            "retraction": "latest",
            "ahead": 0,
        },
    }


def policy(chosen: object, engine: Mapping[str, Any]) -> object:
    """Our policy for its own. Raises ValueError for one that is not modelled."""
    if chosen not in POLICIES:
        raise ValueError(f"engine.policy: found {chosen!r}; expected {' or '.join(POLICIES)} (any other: policy)")
    return chosen


def check(engine: Settings) -> None:
    """Raise ValueError for settings with which it does not start, or that are not modelled."""
    apart, longest = engine.apart, engine.max_model_len
    if apart is None:
        raise ValueError("preset: vllm-v0 has passes of one kind; expected no apart: null")
    if engine.admission != "optimistic":
        raise ValueError("preset: vllm-v0 needs admission: optimistic")
    if engine.prefix_cache or engine.async_scheduling:
        raise ValueError("preset: vllm-v0 is modelled without prefix cache and overlapped loop; expected neither")
    if longest is not None and apart.max_prefill_tokens < longest:
        raise ValueError(
            f"preset: vllm-v0: max_num_batched_tokens ({apart.max_prefill_tokens}) is smaller than "
            f"max_model_len ({longest})"
        )


PRESET = Preset("vllm-v0", VERSION, ALIASES, ("policy",), read, defaults, policy, check)
