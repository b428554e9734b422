"""The kernel's objects for the choices of a scenario: order, admission rule, victim, router; options in nanoseconds.

Does not depend on any policy, rule or router.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from policies import registry as policies
from policies.admissions import ADMISSIONS
from policies.base import choices
from policies.base.entry import Choice, Made, Option
from policies.routers import ROUTERS
from policies.victims import VICTIMS
from sim.policy.base import Admission, Order, Victim
from sim.registry import Registry
from sim.service.routing import First, Router
from slotstep.scenario import units
from slotstep.scenario.cluster import POOLS
from slotstep.scenario.durations import in_nanoseconds, with_units
from slotstep.scenario.engine import RULES
from slotstep.scenario.fields import parts
from traces.synthetic.parser import length

if TYPE_CHECKING:
    from slotstep.scenario.cluster import Pool
    from slotstep.scenario.schema import Scenario

DRAWN = (np.arange(1000) + 0.5) / 1000
"""Quantiles of a length distribution that represent it."""


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


def admission(scenario: Scenario) -> Admission:
    """The admission rule of the engine. Raises BadInput for an unknown rule or option."""
    name, options = scenario.engine.rule
    with scenario.blamed(f"engine.{name if name in RULES else 'admission'}: "):
        return made(ADMISSIONS, name, options)


def victim(scenario: Scenario) -> Victim:
    """The rule that chooses preemption victims: the engine's, or else that of its admission rule or policy."""
    chosen = scenario.engine.victim
    if chosen is not None:
        with scenario.blamed("engine.victim: "):
            return made(VICTIMS, *parts(chosen), seed=scenario.seed)
    return ADMISSIONS.find(scenario.engine.rule[0]).victim or policies.victim(*policy(scenario))


def router(scenario: Scenario, pool: Pool) -> Router:
    """The router of a pool. Raises BadInput for an unknown router or option."""
    name = next((name for name in POOLS if getattr(scenario.cluster, name) is pool), "")
    with scenario.blamed("cluster.router: "):
        chosen = made(ROUTERS, *parts(pool.router), seed=scenario.seed, replicas=pool.size, pool=name)
    return First() if pool.size == 1 else chosen


def made(registry: Registry[Choice[Made]], name: str, options: dict[str, Any], **known: object) -> Made:
    """A new object of a choice from its options as a scenario has them. Raises ValueError, in one line."""
    read = choices.changed(registry.find(name), options, option_read)
    return choices.build(registry, name, read, **known)


def policy(scenario: Scenario) -> tuple[str, dict[str, Any]]:
    """The name of the policy and its options, durations in nanoseconds."""
    name = scenario.policy.name
    return name, policies.changed(name, scenario.policy.options, option_read)


def option_read(option: Option, path: str, value: Any) -> Any:
    """An option in the kernel's units. Raises ValueError, with the option's path, for an invalid one."""
    if option.kind == "lengths":
        return None if value is None else length(value, path).quantile(DRAWN).tolist()
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
