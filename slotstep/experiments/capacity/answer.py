"""The capacity search: for each policy, profile and engine, the largest value that meets the objectives.

All points use the same seeds (common random numbers), which makes differences between points less noisy.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

from calibrate.profiles.profile import Profile
from slotstep.experiments.capacity import search
from slotstep.experiments.capacity.judge import Point, judge
from slotstep.experiments.capacity.objective import Objective
from slotstep.experiments.capacity.trial import Trial, attempt
from slotstep.experiments.replications import drawn
from slotstep.experiments.sweeps.backends import compute
from slotstep.experiments.sweeps.work import read_once
from slotstep.runs import build, costs, size_limits
from slotstep.runs.loading import parse
from slotstep.runs.resolution import resolved, unpinned, with_policy
from slotstep.runs.workload import load
from slotstep.scenario import cluster, units
from traces.errors import BadInput

if TYPE_CHECKING:
    from slotstep.scenario.schema import Scenario

Find = Literal["rate", "replicas", "slots"]
AROUND = (0.5, 0.7, 0.85, 1.15)
"""Points that the curve has in any case, relative to the knee."""
NEAR = 0.06
"""Relative distance below which a point of the curve stands for another."""
IN_BATCH = ("tpot_s", "itl_s")
"""Latencies that start in the batch and do not include queueing."""
HARDLY = 0.01
"""Share of an objective's limit: with a shorter mean wait, the queue is not the bottleneck."""


@dataclass(frozen=True)
class Question:
    """The scenario and the parameters of a search.

    resample  length of the blocks of a block bootstrap, for workloads that draw nothing themselves
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
    def device(self) -> str | None:
        """The GPU of the profile."""
        return None if self.profile is None else str(self.profile.content["device"])


@dataclass(frozen=True)
class Answer:
    """The result for one variant.

    knee    the last point that meets the objectives, None if there is none
    beyond  the first point that does not, None if there is none
    curve   all points evaluated, in order
    """

    variant: Variant
    knee: Point | None
    beyond: Point | None
    curve: tuple[Point, ...]
    price: float | None

    @property
    def binding(self) -> str | None:
        """The objective that is missed beyond the knee."""
        return None if self.beyond is None else self.beyond.binding

    @property
    def bound_by(self) -> str | None:
        """What requests wait for beyond the knee, or the step time if waiting does not explain the miss."""
        if self.beyond is None:
            return None
        shares = self.beyond.waited
        missed = next((each for each in self.beyond.judged if each.objective.text == self.binding), None)
        if missed is not None:
            waiting = sum(sum(trial.waited.values()) for trial in self.beyond.trials)
            requests = sum(trial.summary["requests"]["injected"] for trial in self.beyond.trials)
            hardly = waiting / requests < HARDLY * (missed.objective.limit or 0.0)
            if missed.objective.latency in IN_BATCH or hardly or not shares:
                return "the length of a step"
        return max(shares, key=lambda name: shares[name]) if shares else None

    def cost(self, point: Point) -> float | None:
        """Price per million output tokens at a point; None without a price."""
        made = point.average("rates", "output_tokens_per_s")
        if self.price is None or not made:
            return None
        return self.price * point.trials[0].devices / (made * 3600) * 1e6


@dataclass
class Finder:
    """Evaluates points of one variant, each once; `progress` is called with every point."""

    variant: Variant
    question: Question
    stretches: str | None
    progress: Callable[[Point], None]
    points: dict[float, Point] = field(default_factory=dict)

    def good(self, at: float) -> bool:
        """Whether a point is known to meet all objectives; an undecided one does not count."""
        return self.point(at, self.stages).met is True

    @property
    def stages(self) -> list[int]:
        """The numbers of seeds after which the verdict is evaluated."""
        most = self.question.seeds
        return sorted({max(most // 4, 2), max(most // 2, 2), most})

    def point(self, at: float, stages: Sequence[int]) -> Point:
        """The verdict at a value, with as many seeds as it needs."""
        if at in self.points:
            return self.points[at]
        settings, start = self.settings(at), self.variant.scenario.seed
        trials: list[Trial] = []
        for upto in stages:
            seeds = range(start + len(trials), start + upto)
            calls = [(settings, seed, self.question.objectives) for seed in seeds]
            trials += compute(attempt, calls, "local", None, self.question.jobs)
            trials.sort(key=lambda trial: trial.seed)
            last = upto == self.question.seeds
            found = judge(at, trials, self.question.objectives, self.question.confidence, last)
            if found.met is not None:
                break
        self.points[at] = found
        self.progress(found)
        return found

    def settings(self, at: float) -> dict[str, Any]:
        """The resolved scenario at a value."""
        settings = copy.deepcopy(resolved(self.variant.scenario))
        if self.question.find == "replicas":
            settings["cluster"]["replicas"] = int(at)
            rate = []
        else:
            rate = [{"rate": float(f"{at:.6g}")}]
        again = [] if self.stretches is None else [{"resample": self.stretches}]
        settings["workload"] = transformed(settings["workload"], [*again, *rate])
        return settings

    def answer(self) -> Answer:
        """Bracket the knee, and evaluate points around it."""
        if self.question.find == "replicas":
            bracket = search.fewest(self.good, self.question.most_replicas)
        else:
            bracket = search.largest(self.good, self.own_rate(), self.question.tolerance)
            if bracket.good is not None:
                for factor in AROUND:
                    at = factor * bracket.good
                    if all(abs(other / at - 1) > NEAR for other in self.points):
                        self.point(at, self.stages[:1])
        knee = None if bracket.good is None else self.points[bracket.good]
        beyond = None if bracket.bad is None else self.points[bracket.bad]
        curve = tuple(self.points[at] for at in sorted(self.points))
        return Answer(self.variant, knee, beyond, curve, self.question.price)

    def own_rate(self) -> float:
        """The mean rate of the scenario. Raises BadInput if all requests arrive at once."""
        requests = load(self.variant.scenario, read_once).requests
        span = requests[-1].arrival - requests[0].arrival
        if not span:
            with self.variant.scenario.blamed("workload: "):
                raise ValueError("its requests all come at once; expected a rate to vary")
        return len(requests) / (span / 1e9)


def find(
    question: Question, progress: Callable[[Variant, Point], None] = lambda *_: None
) -> tuple[list[Answer], str | None]:
    """The answers, one for each variant in the order asked, and the length of resampled blocks, None without.

    progress  called with every point evaluated

    Raises BadInput for clients that have no rate, an attainment without objectives, and for policies, profiles and
    engines that do not fit.
    """
    check(question)
    scenario = question.scenario
    random = drawn(scenario, scenario.seed) != drawn(scenario, scenario.seed + 1)
    stretches = None if random else question.resample
    answers = []
    for variant in variants(question):

        def report(point: Point, variant: Variant = variant) -> None:
            progress(variant, point)

        answers.append(Finder(variant, question, stretches, report).answer())
    return answers, stretches


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
        settings = unpinned(scenario)
        groups = list(cluster.group_sections(settings))
        if profile is not None:
            settings["cost"] = {"profile": profile}
            for group in groups:
                group.pop("cost", None)
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


def transformed(workload: Mapping[str, Any], more: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
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
