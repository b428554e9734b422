"""The kernel's objects for the policy of a scenario: order, victim and predictor, options in nanoseconds.

Does not depend on any policy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from policies import registry as policies
from policies import victims
from policies.base.entry import Option
from sim.policy.base import Order, Victim
from sim.policy.ratio import FewestOutputs
from slotstep.scenario import units
from slotstep.scenario.durations import in_nanoseconds, with_units
from slotstep.scenario.fields import parts

if TYPE_CHECKING:
    from slotstep.scenario.schema import Scenario


def order(scenario: Scenario) -> Order:
    """The queue order. Raises BadInput for an unknown policy or option, and for one that needs a prefix cache."""
    with scenario.blamed("policy: "):
        name, options = policy(scenario)
        machine = scenario.engine
        made = policies.build(name, options, scenario.seed, machine.max_active or machine.slots)
        needy = policies.needs_prefix_cache(name, options)
        if needy and not scenario.engine.prefix_cache:
            raise ValueError(f"{needy} needs engine.prefix_cache: true")
        needy = policies.needs_radix_cache(name, options)
        if needy and scenario.engine.radix is None:
            raise ValueError(f"{needy} needs engine.prefix_cache: radix")
        return made


def victim(scenario: Scenario) -> Victim:
    """The rule that chooses preemption victims: the engine's, or else that of its admission rule or policy."""
    chosen = scenario.engine.victim
    if chosen is not None:
        with scenario.blamed("engine.victim: "):
            return victims.build(*parts(chosen), scenario.seed)
    return FewestOutputs() if scenario.engine.ratio is not None else policies.victim(*policy(scenario))


def policy(scenario: Scenario) -> tuple[str, dict[str, Any]]:
    """The name of the policy and its options, durations in nanoseconds."""
    name = scenario.policy.name
    return name, policies.changed(name, scenario.policy.options, option_read)


def option_read(option: Option, path: str, value: Any) -> Any:
    """A policy's option in the kernel's units. Raises ValueError, with the option's path, for an invalid duration."""
    return in_nanoseconds(value, {path.rpartition(".")[2]} if option.kind == "duration" else option.times, path)


def option_written(option: Option, path: str, value: Any) -> Any:
    """A policy's option in the units of a scenario file."""
    return units.text(value) if option.kind == "duration" else with_units(value, option.times)


def resolved_policy(scenario: Scenario) -> str | dict[str, Any]:
    """The policy with every option explicit, in the form of a scenario file."""
    name, options = policy(scenario)
    full = policies.changed(name, policies.resolve(name, options), option_written)
    return {name: full} if full else name


def predictor(scenario: Scenario) -> str | None:
    """The name of the predictor of output lengths that the policy uses, None if it uses none."""
    return policies.predictor(*policy(scenario))
