"""The capacity search: for each variant of a question, the largest value that meets the objectives.

All points use the same seeds (common random numbers), which makes differences between points less noisy.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sim.cost.forms import StepCost
from slotstep.experiments.capacity import search
from slotstep.experiments.capacity.judge import Point, judge
from slotstep.experiments.capacity.question import Question, Variant, check, variants
from slotstep.experiments.capacity.spread import SlowEnd, Spread
from slotstep.experiments.capacity.trial import Trial, attempt
from slotstep.experiments.replications import drawn
from slotstep.experiments.sweeps.backends import compute
from slotstep.experiments.sweeps.work import read_once
from slotstep.runs import uncertainty
from slotstep.runs.resolution import resolved, with_transforms
from slotstep.runs.workload import load
from traces.errors import BadInput

AROUND = (0.5, 0.7, 0.85, 1.15)
"""Points that the curve has in any case, relative to the knee."""
NEAR = 0.06
"""Relative distance below which a point of the curve stands for another."""
IN_BATCH = ("tpot_s", "itl_s")
"""Latencies that start in the batch and do not include queueing."""
STEP_TIME = "step time"
"""What limits the rate where requests hardly wait and steps of full batches last too long."""
NEGLIGIBLE = 0.01
"""Share of an objective's limit: with a shorter mean wait, the queue is not the bottleneck."""


@dataclass(frozen=True)
class Answer:
    """The result for one variant.

    knee    the last point that meets the objectives, None if there is none
    beyond  the first point that does not, None if there is none
    curve   all points evaluated, in order
    spread  the answers under draws of the step cost, None without draws
    slow    the answer at the slow end of the step cost's interval, None with draws
    """

    variant: Variant
    knee: Point | None
    beyond: Point | None
    curve: tuple[Point, ...]
    price: float | None
    spread: Spread | None = None
    slow: SlowEnd | None = None

    @property
    def missed(self) -> float | None:
        """The value nearest to the knee, of those beyond it, at which an objective is missed with confidence."""
        if self.knee is None or self.beyond is None:
            return None
        knee, up = self.knee.at, self.beyond.at > self.knee.at
        missed = [point.at for point in self.curve if point.met is False and (point.at > knee) is up]
        return min(missed, key=lambda at: abs(at - knee), default=None)

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
            hardly = waiting / requests < NEGLIGIBLE * (missed.objective.limit or 0.0)
            if missed.objective.latency in IN_BATCH or hardly or not shares:
                return STEP_TIME
        return max(shares, key=lambda name: shares[name]) if shares else None

    def cost(self, point: Point) -> float | None:
        """Price per million output tokens at a point; None without a price."""
        made = point.average("rates", "output_tokens_per_s")
        if self.price is None or not made:
            return None
        return self.price * point.trials[0].devices / (made * 3600) * 1e6


@dataclass
class Finder:
    """Evaluates points of one variant, each once; `progress` is called with every point.

    cost  a draw of the step cost in place of the scenario's
    """

    variant: Variant
    question: Question
    stretches: str | None
    progress: Callable[[Point], None]
    cost: StepCost | None = None
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
            calls = [(settings, seed, self.question.objectives, self.cost) for seed in seeds]
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
        settings["workload"] = with_transforms(settings["workload"], [*again, *rate])
        return settings

    def bracket(self, start: float | None = None) -> search.Bracket:
        """The knee, and the first value beyond it; `start` is a rate to begin with, the scenario's own if None."""
        if self.question.find == "replicas":
            return search.fewest(self.good, self.question.most_replicas)
        return search.largest(self.good, start or self.own_rate(), self.question.tolerance)

    def answer(self) -> Answer:
        """Bracket the knee, and evaluate points around it."""
        bracket = self.bracket()
        if self.question.find != "replicas" and bracket.good is not None:
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

        found = Finder(variant, question, stretches, report).answer()
        if question.uncertainty:
            found = replace(found, spread=spread_of(found, question, stretches, report))
        else:
            found = replace(found, slow=slow_end_of(found, question, stretches, report))
        answers.append(found)
    return answers, stretches


def spread_of(answer: Answer, question: Question, stretches: str | None, progress: Callable[[Point], None]) -> Spread:
    """The answers to the same question under draws of the step cost; searches for a rate start from the knee."""
    start = None if answer.knee is None else answer.knee.at
    costs = uncertainty.drawn(answer.variant.scenario, question.uncertainty)
    finders = [Finder(answer.variant, question, stretches, progress, cost) for cost in costs]
    return Spread(tuple(each.bracket(start).good for each in finders), uncertainty.of(answer.variant.scenario).source)


def slow_end_of(
    answer: Answer, question: Question, stretches: str | None, progress: Callable[[Point], None]
) -> SlowEnd:
    """The answer to the same question at the slow end of the step cost's interval, begun from the knee."""
    try:
        stated = uncertainty.of(answer.variant.scenario)
    except BadInput as error:
        return SlowEnd(unknown=str(error).rpartition(": ")[2].partition("; expected")[0])
    cost = uncertainty.slow(answer.variant.scenario)
    at = None
    if answer.knee is not None:
        begin = answer.knee.at / max(cost.decode, cost.prompts) ** 0.5
        at = Finder(answer.variant, question, stretches, progress, cost).bracket(begin).good
    return SlowEnd(at, cost.decode, cost.prompts, stated.source)
