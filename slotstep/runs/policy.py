"""The policy of a scenario as the kernel takes it: order, victim and predictor, with options in nanoseconds.

Knows no policy by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from policies import registry as policies
from policies import victims
from policies.entry import Option
from sim.policy.base import Order, Victim
from sim.policy.ratio import FewestOutputs
from slotstep.scenario import units
from slotstep.scenario.durations import in_nanoseconds, with_units
from slotstep.scenario.fields import parts

if TYPE_CHECKING:
    from slotstep.scenario.schema import Scenario


def order(scenario: Scenario) -> Order:
    """The order of the scenario's policy; raises BadInput for an unknown policy or option, or a cache it lacks."""
    with scenario.blamed("policy: "):
        name, options = policy(scenario)
        machine = scenario.engine
        made = policies.build(name, options, scenario.seed, machine.max_active or machine.slots)
        needy = policies.looks_up(name, options)
        if needy and not scenario.engine.prefix_cache:
            raise ValueError(f"{needy} needs engine.prefix_cache: true")
        return made


def victim(scenario: Scenario) -> Victim:
    """Who gives the pages back: as the engine says, or else as its admission rule or the policy has it."""
    chosen = scenario.engine.victim
    if chosen is not None:
        with scenario.blamed("engine.victim: "):
            return victims.build(*parts(chosen), scenario.seed)
    return FewestOutputs() if scenario.engine.ratio is not None else policies.victim(*policy(scenario))


def policy(scenario: Scenario) -> tuple[str, dict[str, Any]]:
    """The name of the scenario's policy and its options, durations in nanoseconds."""
    name = scenario.policy.name
    return name, policies.changed(name, scenario.policy.options, option_read)


def option_read(option: Option, path: str, value: Any) -> Any:
    """An option of a policy as that takes it. Raises ValueError, with the option's path, for what is no duration."""
    return in_nanoseconds(value, {path.rpartition(".")[2]} if option.kind == "duration" else option.times, path)


def option_written(option: Option, path: str, value: Any) -> Any:
    """An option of a policy as a scenario has it."""
    return units.text(value) if option.kind == "duration" else with_units(value, option.times)


def resolved_policy(scenario: Scenario) -> str | dict[str, Any]:
    """The scenario's policy with every option explicit, in the form of a scenario file."""
    name, options = policy(scenario)
    full = policies.changed(name, policies.resolve(name, options), option_written)
    return {name: full} if full else name


def predictor(scenario: Scenario) -> str | None:
    """The name of the predictor of output lengths that the scenario's policy uses, if it uses one."""
    return policies.predictor(*policy(scenario))
