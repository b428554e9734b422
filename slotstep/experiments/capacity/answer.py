"""The answers of a capacity search: for each variant of a question, the largest value that meets the objectives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sim.cost.forms import StepCost
from slotstep.experiments.capacity.finder import Finder, Standing
from slotstep.experiments.capacity.judge import Point
from slotstep.experiments.capacity.question import Question, Variant, check, variants
from slotstep.experiments.capacity.spread import SlowEnd, Spread
from slotstep.experiments.capacity.workers import Workers
from slotstep.experiments.replications import drawn
from slotstep.runs import uncertainty
from traces.errors import BadInput

ABOVE = 1.2
"""A search under another step cost begins at this multiple of the rate that is expected to be its answer."""
IN_BATCH = ("tpot_s", "itl_s")
"""Latencies that start in the batch and do not include queueing."""
STEP_TIME = "step time"
"""What limits the rate where requests hardly wait and steps of full batches last too long."""
LEAST = 0.1
"""Of the answer: at the slow end a lower rate than that is none, since objectives are met then by requests alone."""
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
        def finder(cost: StepCost | None = None) -> Finder:
            return Finder(variant, question, stretches, workers, lambda standing: progress(variant, standing), cost)

        own = finder()
        bracket = own.bracket()
        if question.find != "replicas" and bracket.good is not None:
            own.look_around(bracket.good)
        knee = None if bracket.good is None else own.point(bracket.good)
        beyond = None if bracket.bad is None else own.point(bracket.bad)
        found = Answer(variant, knee, beyond, own.curve(), question.price)
        if question.uncertainty:
            return replace(found, spread=spread_of(found, question.uncertainty, finder))
        return replace(found, slow=slow_end_of(found, finder))

    return workers.each(answer, variants(question)), stretches


def spread_of(answer: Answer, draws: int, finder: Callable[[StepCost], Finder]) -> Spread:
    """The answers to the same question under draws of the step cost."""
    above = None if answer.knee is None else ABOVE * answer.knee.at
    costs = uncertainty.drawn(answer.variant.scenario, draws)
    found = tuple(finder(cost).bracket(above).good for cost in costs)
    return Spread(found, uncertainty.of(answer.variant.scenario).source)


def slow_end_of(answer: Answer, finder: Callable[[StepCost], Finder]) -> SlowEnd:
    """The answer to the same question at the slow end of the step cost's interval."""
    try:
        stated = uncertainty.of(answer.variant.scenario)
    except BadInput as error:
        return SlowEnd(unknown=str(error).rpartition(": ")[2].partition("; expected")[0])
    cost = uncertainty.slow(answer.variant.scenario)
    at, searched = None, finder(cost)
    if answer.knee is not None and (isinstance(answer.knee.at, int) or searched.good(LEAST * answer.knee.at)):
        at = searched.bracket(ABOVE * answer.knee.at / max(cost.decode, cost.prompts) ** 0.5).good
    return SlowEnd(at, cost.decode, cost.prompts, stated.source)
