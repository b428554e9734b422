"""The values of a scenario that the page can change, and the scenario with some of them changed."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from slotstep.runs.loading import parse
from slotstep.runs.resolution import on_profile, unpinned, with_transforms
from slotstep.scenario import document
from traces.errors import BadInput

if TYPE_CHECKING:
    from slotstep.scenario.schema import Scenario

REQUESTS, RATE, POLICY, PROFILE = "requests", "rate", "policy", "cost.profile"
ENGINE = ("slots", "token_budget", "pages")
REACH = 8.0
"""A slider reaches from the scenario's value over this number to that value times it."""


@dataclass(frozen=True)
class Control:
    """A value that the page can change.

    `key` is a key of the scenario, or REQUESTS or RATE. `value` is what the scenario has, "" for nothing. A control
    with `choices` is a list; one with `whole` takes whole numbers.
    """

    key: str
    group: str
    value: int | float | str
    choices: tuple[str, ...] = ()
    whole: bool = False

    @property
    def slider(self) -> bool:
        """Whether it has a slider, which is logarithmic: a number above 0."""
        return not isinstance(self.value, str) and self.value > 0


def controls(scenario: Scenario, requests: int) -> list[Control]:
    """The controls of a scenario of which the first `requests` requests are simulated."""
    from calibrate.profiles.profile import shipped
    from policies.registry import POLICIES

    found = [Control(REQUESTS, "Workload", requests, whole=True), Control(RATE, "Workload", 1.0)]
    laws = scenario.workload.synthetic or {}
    found += [
        Control(f"workload.synthetic.{key}", "Workload", value, whole=isinstance(value, int))
        for key, value in numbers(laws)
        if key.rpartition(".")[2] not in ("requests", "duration")
    ]
    found += [Control(key, "Engine", value, whole=True) for key, value in engine_values(scenario).items()]
    found.append(Control(POLICY, "Engine", scenario.policy.name, listed(scenario.policy.name, POLICIES.names())))
    if scenario.cost.profile is not None:
        own = str(scenario.cost.profile)
        found.append(Control(PROFILE, "Engine", own, listed(own, shipped())))
    return found


def engine_values(scenario: Scenario) -> dict[str, int | str]:
    """What a scenario has for the keys of ENGINE, "" for nothing; of a preset, what follows from its device."""
    found = {f"engine.{name}": getattr(scenario.engine, name) for name in ENGINE}
    return {key: "" if value is None else value for key, value in found.items()}


def listed(own: str, others: Any) -> tuple[str, ...]:
    """The scenario's own choice, then the others."""
    return tuple(dict.fromkeys([own, *others]))


def numbers(laws: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, int | float]]:
    """The dotted keys and the values of all numbers in a mapping."""
    for name, value in laws.items():
        if isinstance(value, Mapping):
            yield from numbers(value, f"{path}{name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{path}{name}", value


def changed(scenario: Scenario, given: Mapping[str, Any]) -> dict[str, Any]:
    """A scenario's mapping with the values of `given`, by key of the control and without REQUESTS.

    Values of a preset that follow from the device are those of a changed profile. Raises BadInput for a rate that is
    no number above 0; other values are checked by `slotstep.parse`.
    """
    values = {key: value for key, value in given.items() if key not in (REQUESTS, RATE, PROFILE)}
    settings = unpinned(scenario)
    if PROFILE in given:
        settings = on_profile(scenario, given[PROFILE]) | {"cost": {**settings["cost"], "profile": given[PROFILE]}}
    settings = copy.deepcopy(settings)
    if "engine.pages" in values:
        settings["engine"].pop("fit", None)
    document.override_with(settings, values)
    if RATE in given:
        times = given[RATE]
        if isinstance(times, bool) or not isinstance(times, int | float) or not times > 0:
            raise BadInput(f"rate: found {document.brief(times)}; expected a number above 0")
        settings["workload"] = with_transforms(settings["workload"], [{"scale_rate": times}])
    return settings


def shortened(settings: Mapping[str, Any], requests: object) -> dict[str, Any]:
    """A scenario's mapping with its first `requests` requests only. Raises BadInput for no whole number above 0."""
    if isinstance(requests, bool) or not isinstance(requests, int) or requests < 1:
        raise BadInput(f"requests: found {document.brief(requests)}; expected a whole number of at least 1")
    return {**settings, "workload": with_transforms(settings["workload"], [{"first": requests}])}


def read(given: object, known: list[Control]) -> dict[str, Any]:
    """The values that the page sent as text, by key. Raises BadInput for an unknown key and for no YAML."""
    keys = {control.key for control in known}
    if not isinstance(given, dict):
        raise BadInput("expected values by key")
    found = {}
    for key, text in given.items():
        if key not in keys or not isinstance(text, str):
            raise BadInput(f"{key}: no control of this page")
        try:
            found[key] = document.parse(text)
        except yaml.YAMLError:
            raise BadInput(f"{key}: found {document.brief(text)}; expected a value") from None
    return found


def loaded(settings: Mapping[str, Any], source: str) -> Scenario:
    """The scenario of a mapping, checked. Raises BadInput."""
    return parse(settings, source)
