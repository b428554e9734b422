"""The question of a capacity search, and its variants: every policy with every profile and engine."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Literal

from calibrate.profiles.profile import Profile
from slotstep.experiments.capacity.objective import Objective
from slotstep.runs import build, costs, size_limits
from slotstep.runs.loading import parse
from slotstep.runs.resolution import on_profile, unpinned, with_policy
from slotstep.scenario import cluster, units
from traces.errors import BadInput

if TYPE_CHECKING:
    from slotstep.scenario.schema import Scenario

FEWEST_DRAWS = 10
Find = Literal["rate", "replicas", "slots"]


@dataclass(frozen=True)
class Question:
    """The scenario and the parameters of a search.

    resample     length of the blocks of a block bootstrap, for workloads that draw nothing themselves
    uncertainty  draws of the step cost, for each of which the answer is found again; 0: none
    """

    scenario: Scenario
    find: Find = "rate"
    objectives: tuple[Objective, ...] = ()
    policies: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()
    slots: tuple[int, ...] = ()
    budgets: tuple[int, ...] = ()
    confidence: float = 0.95
    seeds: int = 16
    tolerance: float = 0.02
    most_replicas: int = 64
    price: float | None = None
    resample: str = "60s"
    uncertainty: int = 0
    jobs: int | None = None


@dataclass(frozen=True)
class Variant:
    """One scenario to search, with its profile, slots and token budget; None where its replicas differ."""

    scenario: Scenario
    policy: str
    profile: Profile | None
    slots: int | None
    budget: int | None

    @property
    def label(self) -> str:
        """The policy, and the profile, slots and token budget where all replicas have the same."""
        named = (None if self.profile is None else self.profile.name, self.slots and f"{self.slots} slots")
        budget = self.budget and f"budget {self.budget}"
        return ", ".join(str(part) for part in (self.policy, *named, budget) if part)

    @property
    def device(self) -> str | None:
        """The GPU of the profile."""
        return None if self.profile is None else str(self.profile.content["device"])


def check(question: Question) -> None:
    """Raise BadInput for a question that has no answer."""
    scenario = question.scenario
    size_limits.check_runs("seeds", question.seeds, scenario.allow_large)
    clients = scenario.clients
    if question.find == "replicas" and not scenario.cluster.uniform:
        with scenario.blamed("cluster: "):
            raise ValueError("its replicas are not alike, or they fail; --find replicas needs equal ones that do not")
    if question.find != "replicas" and clients is not None and clients.closed is not None:
        with scenario.blamed("clients.closed: "):
            raise ValueError("clients that wait for their answers have no rate to find; expected --find replicas")
    attainment = any(each.latency is None for each in question.objectives)
    if attainment and not scenario.objectives.limits:
        with scenario.blamed("objectives: "):
            raise ValueError("found none; an attainment needs some")
    if question.uncertainty and question.uncertainty < FEWEST_DRAWS:
        raise BadInput(f"--uncertainty {question.uncertainty}: expected 0, or at least {FEWEST_DRAWS} draws")
    try:
        units.nanoseconds(question.resample)
    except ValueError as error:
        raise BadInput(f"--resample {question.resample}: {error}") from None


def variants(question: Question) -> list[Variant]:
    """Every policy with every profile and, to find the best slots, every engine."""
    scenario = question.scenario
    slots, budgets = question.slots, question.budgets
    if question.find == "slots" and not slots:
        own = max(each.slots for each in scenario.cluster.engines(scenario.engine))
        slots = tuple(sorted({max(own // 4, 1), max(own // 2, 1), own, 2 * own, 4 * own}))
    found = []
    for profile, policy, places, budget in product(
        question.profiles or (None,), question.policies or (None,), slots or (None,), budgets or (None,)
    ):
        settings = unpinned(scenario) if profile is None else on_profile(scenario, profile)
        groups = list(cluster.group_sections(settings))
        for key, value in (("slots", places), ("token_budget", budget)):
            for section in (settings, *groups) if value is not None else ():
                section["engine"][key] = value
        other = parse(settings, scenario.name)
        found.append(described(other if policy is None else with_policy(other, policy)))
    return found


def described(scenario: Scenario) -> Variant:
    """A scenario as a variant, with what all of its replicas have in common."""
    engines = scenario.cluster.engines(scenario.engine)
    replicas = [each for pool in scenario.cluster.pools for each in build.replicas(scenario, pool)]
    (slots, *other_slots), (budget, *other_budgets) = (
        dict.fromkeys(getattr(each, key) for each in engines) for key in ("slots", "token_budget")
    )
    profiles = {None if found is None else found.sha256: found for found in map(costs.profile, replicas)}
    return Variant(
        scenario,
        scenario.policy.name,
        next(iter(profiles.values())) if len(profiles) == 1 else None,
        None if other_slots else slots,
        None if other_budgets else budget,
    )
