"""The answers of a capacity search: for each variant of a question, the largest value that meets the objectives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from slotstep.experiments.capacity.finder import Finder, Standing
from slotstep.experiments.capacity.judge import Point
from slotstep.experiments.capacity.question import Question, Variant, check, variants
from slotstep.experiments.capacity.spread import Spread
from slotstep.experiments.capacity.workers import Workers
from slotstep.experiments.replications import drawn
from slotstep.runs import uncertainty

IN_BATCH = ("tpot_s", "itl_s")
"""Latencies that start in the batch and do not include queueing."""
NEGLIGIBLE = 0.01
"""Share of an objective's limit: with a shorter mean wait, the queue is not the bottleneck."""


@dataclass(frozen=True)
class Answer:
    """The result for one variant.

    knee    the last point that meets the objectives, None if there is none
    beyond  the first point that does not, None if there is none
    curve   all points evaluated, in order
    spread  the answers under draws of the step cost, None without draws
    """

    variant: Variant
    knee: Point | None
    beyond: Point | None
    curve: tuple[Point, ...]
    price: float | None
    spread: Spread | None = None

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
                return "the length of a step"
        return max(shares, key=lambda name: shares[name]) if shares else None

    def cost(self, point: Point) -> float | None:
        """Price per million output tokens at a point; None without a price."""
        made = point.average("rates", "output_tokens_per_s")
        if self.price is None or not made:
            return None
        return self.price * point.trials[0].devices / (made * 3600) * 1e6


def find(
    question: Question, progress: Callable[[Variant, Standing], None] = lambda *_: None
) -> tuple[list[Answer], str | None]:
    """The answers, one for each variant in the order asked, and the length of resampled blocks, None without.

    progress  called whenever the search of a variant begins or ends runs at a value

    Raises BadInput for clients that have no rate, an attainment without objectives, and for policies, profiles and
    engines that do not fit.
    """
    check(question)
    scenario = question.scenario
    random = drawn(scenario, scenario.seed) != drawn(scenario, scenario.seed + 1)
    stretches = None if random else question.resample
    workers = Workers(question.jobs)

    def answer(variant: Variant) -> Answer:
        def report(standing: Standing) -> None:
            progress(variant, standing)

        finder = Finder(variant, question, stretches, workers, report)
        bracket = finder.bracket()
        if question.find != "replicas" and bracket.good is not None:
            finder.look_around(bracket.good)
        knee = None if bracket.good is None else finder.point(bracket.good)
        beyond = None if bracket.bad is None else finder.point(bracket.bad)
        spread = spread_of(variant, knee, question, stretches, workers, report) if question.uncertainty else None
        return Answer(variant, knee, beyond, finder.curve(), question.price, spread)

    return workers.each(answer, variants(question)), stretches


def spread_of(
    variant: Variant,
    knee: Point | None,
    question: Question,
    stretches: str | None,
    workers: Workers,
    progress: Callable[[Standing], None],
) -> Spread:
    """The answers to the same question under draws of the step cost; searches for a rate start from the knee."""
    start = None if knee is None else knee.at
    costs = uncertainty.drawn(variant.scenario, question.uncertainty)
    finders = [Finder(variant, question, stretches, workers, progress, cost) for cost in costs]
    return Spread(tuple(each.bracket(start).good for each in finders), uncertainty.of(variant.scenario).source)
