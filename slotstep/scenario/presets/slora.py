"""The preset of S-LoRA 1.0.0, whose router is LightLLM's: modelled on its source, not verified by logs.

Prompts are computed in passes of their own, in which nothing decodes. A prefill is tried when nothing runs, and after
it again from the eleventh pass on. A request is admitted if the memory lasts should all run to their limits.

Sources: github.com/S-LoRA/S-LoRA, `slora/server/router/manager.py` (loop, `max_wait_tokens`), `req_queue.py`
(admission), `vtc_req_queue.py`, and `slora/server/api_server.py` (defaults).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slotstep.scenario.document import brief
from slotstep.scenario.presets.preset import Preset, Settings, count

VERSION = "1.0.0"

ALIASES = {
    "max_total_token_num": "pages",
    "running_max_req_size": "slots",
    "max_req_total_len": "max_model_len",
    "batch_max_tokens": "apart.max_prefill_tokens",
}
"""S-LoRA's names of our keys. A page is one token position."""

POLICIES = {"slora": "fcfs", "vtc_fair": "vtc"}
MEMORY = 6000
LONGEST = 3072
WAIT = 10
RULE = {"peak": {"strict": True}}


def read(given: Mapping[str, Any]) -> dict[str, Any]:
    """All values are the same."""
    return {}


def defaults(engine: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults of its server: a prefill takes a sixth of the memory, or one request of the longest."""
    found: dict[str, Any] = {
        "version": VERSION,
        "slots": 1000,
        "page_size": 1,
        "max_model_len": LONGEST,
        "admission": RULE,
    }
    if "fit" not in engine:
        found["pages"] = MEMORY
    memory = count(engine.get("pages", MEMORY)) or MEMORY
    longest = count(engine.get("max_model_len", LONGEST)) or memory
    found["apart"] = {"admission": "rule", "max_prefill_tokens": max(memory // 6, longest), "prefill_interval": WAIT}
    return found


def policy(chosen: object, engine: Mapping[str, Any]) -> object:
    """Our policy for its scheduler. Raises ValueError for one that is not modelled."""
    if chosen not in POLICIES:
        raise ValueError(f"engine.scheduler: found {brief(chosen)}; expected {' or '.join(POLICIES)}")
    assert isinstance(chosen, str)
    return POLICIES[chosen]


def check(engine: Settings) -> None:
    """Raise ValueError for settings that S-LoRA does not have."""
    if engine.apart is None:
        raise ValueError("preset: s-lora has passes of one kind; expected no apart: null")
    if engine.admission != RULE:
        raise ValueError(f"preset: s-lora needs admission: {RULE}")
    longest = engine.max_model_len
    if longest is not None and engine.apart.max_prefill_tokens < longest:
        raise ValueError(
            f"preset: s-lora: batch_max_tokens ({engine.apart.max_prefill_tokens}) must be at least "
            f"max_req_total_len ({longest})"
        )
    if engine.prefix_cache or engine.async_scheduling:
        raise ValueError("preset: s-lora has no prefix cache and no overlapped loop; expected neither")


PRESET = Preset("s-lora", VERSION, ALIASES, ("scheduler",), read, defaults, policy, check)
