"""A scenario on another engine: the preset of that engine with its defaults, on the same memory and cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slotstep.runs.loading import DEVICE_KEYS, parse
from slotstep.runs.resolution import unpinned
from slotstep.scenario.presets import PRESETS
from traces.errors import BadInput

if TYPE_CHECKING:
    from slotstep.scenario.schema import Scenario

KEPT = ("max_model_len", "device", "device_memory", "fit", "macro", "share")
"""Settings of the engine that belong to the machine, the model or the run, not to the engine's scheduler."""


def on_engine(scenario: Scenario, name: str, profile: str | None = None) -> Scenario:
    """The scenario on the engine of a preset, its name that of the preset.

    The engine has its own defaults, and as many tokens of KV memory as the scenario's; the order of its queue is its
    own too. `profile` prices its steps instead of the scenario's cost.

    Raises BadInput for an unknown preset, groups of replicas, and settings or a profile that do not fit.
    """
    if name not in PRESETS:
        raise BadInput(f"--engines: {name!r} is unknown; expected some of {', '.join(PRESETS)}")
    settings = unpinned(scenario)
    if not all(isinstance(pool.replicas, int) for pool in scenario.cluster.pools):
        raise BadInput("--engines: the cluster has groups of replicas with engines of their own; expected one engine")
    given = settings["engine"]
    kept = [key for key in KEPT if key in given]
    if profile is not None:
        own = scenario.given.get("engine") or {}
        kept = [key for key in kept if key not in DEVICE_KEYS or key in own]
    engine: dict[str, Any] = {"preset": name, **{key: given[key] for key in kept}}
    if "share" in engine and not PRESETS[name].defaults(engine).get("prefix_cache"):
        del engine["share"]
    if "fit" not in engine:
        size = PRESETS[name].defaults({}).get("page_size", given["page_size"])
        engine["pages"] = max(1, given["pages"] * given["page_size"] // size)
    settings |= {"name": name, "engine": engine}
    del settings["policy"]
    if profile is not None:
        settings["cost"] = {"profile": profile}
    return parse(settings, source=name)
