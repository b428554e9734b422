"""The preset of SGLang: its arguments, and its defaults, which depend on the memory of the GPU and of the cache.

The same settings under the names of its step logs are aliases too (`kv_tokens`, `context_len`, `overlap`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from slotstep.scenario import units
from slotstep.scenario.document import brief
from slotstep.scenario.fields import number, truth, whole
from slotstep.scenario.presets.preset import Preset, Settings, count

VERSION = "0.5.23"

ALIASES = {
    "max_running_requests": "slots",
    "max_total_tokens": "pages",
    "kv_tokens": "pages",
    "mem_fraction_static": "fit",
    "context_length": "max_model_len",
    "context_len": "max_model_len",
    "disable_radix_cache": "prefix_cache",
    "radix_eviction_policy": "radix",
    "disable_overlap_schedule": "async_scheduling",
    "overlap": "async_scheduling",
    "max_prefill_tokens": "apart.max_prefill_tokens",
    "chunked_prefill_size": "apart.chunked_prefill_size",
    "enable_mixed_chunk": "apart.mixed",
    "prefill_decode_interval": "apart.prefill_interval",
    "prefill_max_requests": "apart.prefill_max_requests",
    "schedule_conservativeness": "apart.initial_ratio",
    "priority_scheduling_preemption_threshold": "apart.preempt_by",
    "enable_priority_scheduling": "apart.preempt_by",
    "retraction_policy": "apart.retraction",
}
"""SGLang's names of our keys. Token counts become pages, and a conservativeness the ratios that follow from it."""

DEVICE_MEMORY = "80GiB"
CHUNKS = ((20, 2048), (60, 4096), (160, 8192))
"""GiB below which a GPU gets this chunked_prefill_size."""
LARGEST_CHUNK = 16384

POLICIES = {
    "fcfs": "requeue",
    "lof": "lof",
    "random": "shuffle",
    "lpm": "lpm",
    "dfs-weight": "dfs_weight",
    "hrrn": "prefill_hrrn",
    "shortest-prefill-first": "shortest_prefill_first",
}
NEED_CACHE = ("lpm", "dfs-weight", "hrrn", "shortest-prefill-first")
BY_PRIORITY = ("fcfs", "lof")
THRESHOLD = 10


def ratios(conservativeness: float) -> dict[str, float]:
    """The share of further tokens kept free at first, and at least."""
    first = min(0.7 * conservativeness, 1.0)
    return {"apart.initial_ratio": first, "apart.minimum_ratio": min(0.14 * first, 1.0)}


def read(given: Mapping[str, Any]) -> dict[str, Any]:
    """Our values of options that are not the same as SGLang's. Raises ValueError, with its name, for invalid ones."""
    found: dict[str, Any] = {}

    def take(name: str, reader: Callable[[object], Any]) -> Any:
        try:
            return reader(given[name])
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None

    size = count(given.get("page_size", 1)) or 1
    for name in ("max_total_tokens", "kv_tokens"):
        if name in given:
            found["pages"] = take(name, whole(size)) // size
    for name, key in (("disable_radix_cache", "prefix_cache"), ("disable_overlap_schedule", "async_scheduling")):
        if name in given:
            found[key] = not take(name, truth)
    if "radix_eviction_policy" in given:
        found["radix"] = {"eviction": given["radix_eviction_policy"]}
    if given.get("chunked_prefill_size") == -1:
        found["apart.chunked_prefill_size"] = 0
    if "schedule_conservativeness" in given:
        found |= ratios(float(take("schedule_conservativeness", number)))
    if "prefill_decode_interval" in given:
        found["apart.prefill_interval"] = given["prefill_decode_interval"] or 0
    return found | displacement(given)


def defaults(engine: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults of SGLang's server, beside the settings given under our keys."""
    memory = engine.get("device_memory", DEVICE_MEMORY)
    gibibytes = units.gibibytes(units.memory(memory))
    chunk = next((size for least, size in CHUNKS if gibibytes < least), LARGEST_CHUNK)
    found: dict[str, Any] = {
        "version": VERSION,
        "page_size": 1,
        "prefix_cache": True,
        "async_scheduling": True,
        "device_memory": memory,
        "slots": most_running(engine),
        "apart": {"chunked_prefill_size": chunk},
    }
    if engine.get("prefix_cache", True) is True:
        found["radix"] = {}
    return found


def most_running(engine: Mapping[str, Any]) -> int:
    """SGLang's default number of requests at once, by the tokens of the cache and the longest context."""
    pages, size = count(engine.get("pages")), count(engine.get("page_size", 1))
    if pages is None or size is None:
        return 2048
    tokens = pages * size
    longest = count(engine.get("max_model_len")) or tokens
    return max(1, min(max(tokens * 512 // longest, 2048), 4096, tokens // 2))


def policy(chosen: object, engine: Mapping[str, Any]) -> object:
    """Our policy for SGLang's schedule_policy. Raises ValueError for one that it does not have, or refuses."""
    name = "fcfs" if chosen is None else chosen
    if name not in POLICIES:
        raise ValueError(f"engine.schedule_policy: found {brief(chosen)}; expected {', '.join(POLICIES)}")
    assert isinstance(name, str)
    if name in NEED_CACHE and (engine.get("disable_radix_cache") is True or engine.get("prefix_cache") is False):
        if name == "shortest-prefill-first":
            raise ValueError("engine.schedule_policy: shortest-prefill-first needs the prefix cache")
        name = "fcfs"
    if name in BY_PRIORITY and engine.get("enable_priority_scheduling") is True:
        return {POLICIES[name]: {"by_priority": True}}
    return POLICIES[name]


def displacement(given: Mapping[str, Any]) -> dict[str, Any]:
    """The threshold of displacement: only with priority scheduling. Raises ValueError for one without it."""
    threshold = given.get("priority_scheduling_preemption_threshold")
    if given.get("enable_priority_scheduling") is not True:
        if threshold is not None:
            raise ValueError("priority_scheduling_preemption_threshold needs enable_priority_scheduling: true")
        return {"apart.preempt_by": None} if "enable_priority_scheduling" in given else {}
    return {"apart.preempt_by": THRESHOLD if threshold is None else threshold}


def check(engine: Settings) -> None:
    """Raise ValueError for settings with which SGLang does not start."""
    if engine.apart is None:
        raise ValueError("preset: sglang has passes of one kind; expected no apart: null")


PRESET = Preset(
    "sglang",
    VERSION,
    ALIASES,
    ("schedule_policy", "enable_priority_scheduling"),
    read,
    defaults,
    policy,
    check,
)
