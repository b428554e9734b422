"""Presets: the keys of an engine section under an engine's own names, with its defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from slotstep.scenario.fields import UnknownKeyError
from slotstep.scenario.presets import sglang, slora, trtllm, vllm, vllm_v0
from slotstep.scenario.presets.preset import Preset

PRESETS: dict[str, Preset] = {each.PRESET.name: each.PRESET for each in (vllm, sglang, trtllm, vllm_v0, slora)}


def chosen(engine: Mapping[str, Any]) -> Preset | None:
    """The preset of an engine section; None without one, and for one that does not exist."""
    name = engine.get("preset")
    return PRESETS.get(name) if isinstance(name, str) else None


def with_our_keys(engine: Mapping[str, Any], own: Iterable[str]) -> dict[str, Any]:
    """The engine section of a scenario with our keys (`own`) only, and the defaults of its preset.

    Raises ValueError for a key given under both names, for a preset's name without the preset, and for a value that
    the engine does not have; UnknownKeyError for a key that is neither.
    """
    preset = chosen(engine)
    if preset is None:
        if "preset" not in engine:
            refuse_aliases(engine, set(own))
        return dict(engine)
    known = [*own, *preset.aliases]
    unknown = next((key for key in engine if key not in known), None)
    if unknown is not None:
        raise UnknownKeyError(unknown, known)
    found = {key: value for key, value in engine.items() if key not in preset.aliases}
    inner = found.get("apart")
    for alias, name in written(engine).items():
        section, _, key = name.rpartition(".")
        if key in (inner or {}) if section else name in found:
            raise ValueError(f"{alias} and {name} are one setting; expected one of them")
    values = {name: engine[alias] for alias, name in written(engine).items()} | preset.read(engine)
    found |= {name: value for name, value in values.items() if "." not in name}
    found = preset.defaults(found) | found
    parts = {name.partition(".")[2]: value for name, value in values.items() if "." in name}
    if parts or inner is not None:
        usual = preset.defaults(found).get("apart", {})
        found["apart"] = usual | parts | (inner if isinstance(inner, Mapping) else {})
    return found


def refuse_aliases(engine: Mapping[str, Any], own: set[str]) -> None:
    """Raise ValueError for a key that only a preset has."""
    for preset in PRESETS.values():
        for alias, name in preset.aliases.items():
            if alias in engine and alias not in own:
                raise ValueError(f"{alias} is a name of preset: {preset.name}; expected {name}, or that preset")


def written(engine: Mapping[str, Any]) -> dict[str, str]:
    """The preset's names that an engine section uses, each with our key."""
    preset = chosen(engine)
    aliases = {} if preset is None else preset.aliases
    return {alias: name for alias, name in aliases.items() if alias in engine}


def move_policy(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """A scenario with the policy of a preset's engine options moved to the scenario's own key.

    Raises ValueError for a policy given twice, without the preset, or one that the engine does not have.
    """
    engine = scenario.get("engine")
    if not isinstance(engine, Mapping):
        return dict(scenario)
    preset = chosen(engine)
    if preset is None:
        for other in PRESETS.values():
            if other.ordering and other.ordering[0] in engine:
                raise ValueError(
                    f"engine.{other.ordering[0]} is a name of preset: {other.name}; expected policy, or that preset"
                )
        return dict(scenario)
    key = next((each for each in preset.ordering if each in engine), None)
    if key is None:
        return dict(scenario)
    if "policy" in scenario:
        raise ValueError(f"policy and engine.{key} are one setting; expected one of them")
    policy = preset.policy(engine.get(preset.ordering[0]), engine)
    kept = {name: value for name, value in engine.items() if name not in preset.ordering or name in preset.aliases}
    return {**scenario, "engine": kept, "policy": policy}
