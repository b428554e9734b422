"""A scenario with every default explicit, with the content of its profiles, or under another policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from slotstep.runs import costs
from slotstep.runs.build import check_replicas
from slotstep.runs.policy import resolved_policy
from slotstep.scenario import cluster, presets
from slotstep.scenario.policy import PolicyChoice

if TYPE_CHECKING:
    from slotstep.scenario.cost import Cost
    from slotstep.scenario.engine import Engine
    from slotstep.scenario.schema import Scenario


def resolved(scenario: Scenario) -> dict[str, Any]:
    """A scenario as a mapping of plain values that `slotstep.parse` reads back.

    Every default is explicit, durations are text with a unit, and the options of the policy are complete.
    """
    content = scenario.model_dump(mode="json", exclude_none=True, by_alias=True)
    return content | {"policy": resolved_policy(scenario)}


def unpinned(scenario: Scenario) -> dict[str, Any]:
    """As `resolved`, without what follows from profiles, so that another cost or engine may be put in."""
    settings = resolved(scenario.written) | {"policy": resolved_policy(scenario)}
    for section in (settings, *cluster.group_sections(settings)):
        if "fit" in section["engine"]:
            del section["engine"]["pages"]
    return settings


def on_profile(scenario: Scenario, profile: str) -> dict[str, Any]:
    """As `unpinned`, on a profile; an engine with a preset has the defaults of the profile's device.

    What the scenario gives for its engines stays, a device too.
    """
    settings = unpinned(scenario) | {"cost": {"profile": profile}}
    groups = list(cluster.group_sections(settings))
    for group in groups:
        group.pop("cost", None)
    given = scenario.given
    preset = presets.chosen(given.get("engine") or {})
    if preset is not None:
        sections = zip((settings, *groups), (given, *cluster.groups_given(given)), strict=True)
        for section, own in sections:
            engine = {"preset": preset.name, **(own.get("engine") or {})}
            read = {name: engine[alias] for alias, name in presets.written(engine).items()} | preset.read(engine)
            ours = {name: value for name, value in read.items() if "." not in name}
            spelled = {*preset.ordering, *(alias for alias, name in preset.aliases.items() if name in ours)}
            kept = {key: value for key, value in engine.items() if key not in spelled} | ours
            section["engine"] = kept | {key: section["engine"][key] for key in ("warm",) if key in kept}
    return settings


def pinned(scenario: Scenario) -> Scenario:
    """A scenario with what follows from its profiles: the digest of their content, and the pages that fit.

    Raises BadInput for a profile that cannot be used, and for a model that does not fit.
    """

    def pinned_group(group: cluster.ReplicaGroup) -> cluster.ReplicaGroup:
        cost, engine = pinned_sections(scenario, group.cost or scenario.cost, group.engine)
        return group.model_copy(update={"cost": cost if group.cost else None, "engine": engine})

    cost, engine = pinned_sections(scenario, scenario.cost, scenario.engine)
    return scenario.completed(cost=cost, engine=engine, cluster=cluster.changed(scenario.cluster, pinned_group))


def pinned_sections(scenario: Scenario, cost: Cost, engine: Engine) -> tuple[Cost, Engine]:
    """A cost with the digest of its profile, and an engine with the pages that fit, if it has `fit`."""
    own = scenario.model_copy(update={"cost": cost, "engine": engine})
    profile = costs.profile(own)
    if engine.fit is not None:
        engine = engine.model_copy(update={"pages": costs.pages_that_fit(own, profile), "fit": None})
    return (cost if profile is None else cost.model_copy(update={"sha256": profile.sha256})), engine


def with_policy(scenario: Scenario, name: str) -> Scenario:
    """A scenario under the policy `name`: with its own options if it has that policy, else with the defaults.

    Raises BadInput for a name that no policy has, and for a policy that does not fit the engine.
    """
    if name == scenario.policy.name:
        return scenario
    other = scenario.model_copy(update={"policy": PolicyChoice.model_construct(name=name, options={})})
    check_replicas(other)
    return other


def with_transforms(workload: Mapping[str, Any], more: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A resolved workload with more transforms after its own."""
    if not more:
        return dict(workload)
    kept = dict(workload)
    steps = list(kept.pop("transforms", None) or [])
    for key in ("between", "first", "scale_rate"):
        value = kept.pop(key, None)
        if value is not None and not (key == "scale_rate" and value == 1):
            steps.append({key: value})
    return {**kept, "transforms": [*steps, *more]}
