"""One candidate of a plan: what a replica of it bears, found by the capacity search on the slice that binds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sim.cost.forms import StepCost
from sim.cost.full_batch import Bound, Load
from slotstep.experiments.capacity import answer, content
from slotstep.experiments.capacity.finder import Finder
from slotstep.experiments.capacity.judge import Point
from slotstep.experiments.capacity.objective import Objective
from slotstep.experiments.capacity.question import Question, Variant, variants
from slotstep.experiments.capacity.spread import SlowEnd
from slotstep.experiments.capacity.workers import Workers
from slotstep.planning.candidates import Candidate
from slotstep.planning.slices import ENOUGH, Slice
from slotstep.runs import build, uncertainty
from slotstep.runs.loading import parse
from traces.errors import BadInput

if TYPE_CHECKING:
    from slotstep.scenario.schema import Scenario

BEGIN = 0.5
"""Of what a full batch bears: where the search begins."""
ALONE = 0.01
"""Of what a full batch bears: a rate at which requests hardly meet each other."""
PIECES = 8
"""Each run is put together of so many pieces of a slice."""
SEEDS = 5
TOLERANCE = 0.05
MARGIN = 0.1
"""By how much prompts and outputs are lengthened to divide a cost among tokens."""


@dataclass(frozen=True)
class Wanted:
    """What is asked of every candidate."""

    objectives: tuple[Objective, ...]
    policies: tuple[str, ...] = ()
    slots: tuple[int, ...] = ()
    budgets: tuple[int, ...] = ()
    confidence: float = 0.95


def scenario_of(candidate: Candidate, where: Slice) -> dict[str, Any]:
    """The scenario of one replica of a candidate on a slice; of few requests repeated until there are enough."""
    workload: dict[str, Any] = {"trace": {"slotstep": where.file}}
    simulated = where.requests * where.kept
    if simulated < ENOUGH / 2:
        workload["transforms"] = [{"repeat_until": f"{(where.end - where.begin) * ENOUGH / simulated:.3f}s"}]
    return {**candidate.scenario, "workload": workload}


def question_of(candidate: Candidate, where: Slice, wanted: Wanted, most: float) -> Question:
    """The question for the rate that one replica bears, of which a full batch bears `most`; begun below that."""
    begin = BEGIN * most
    settings = at_rate(scenario_of(candidate, where), begin)
    return Question(
        scenario=parse(settings, name=str(candidate.scenario["name"])),
        objectives=wanted.objectives,
        policies=wanted.policies,
        slots=wanted.slots,
        budgets=wanted.budgets,
        confidence=wanted.confidence,
        seeds=SEEDS,
        tolerance=TOLERANCE,
        resample=piece(where, begin),
        jobs=1,
    )


def at_rate(settings: dict[str, Any], rate: float) -> dict[str, Any]:
    """A scenario at a rate, by shorter or longer gaps."""
    workload = settings["workload"]
    transforms = [*workload.get("transforms", ()), {"rate": float(f"{rate:.6g}")}]
    return {**settings, "workload": {**workload, "transforms": transforms}}


def piece(where: Slice, rate: float) -> str:
    """The length of the pieces of which runs are put together, of a slice at this rate; at least a microsecond."""
    length = (where.end - where.begin) / PIECES * where.rate * where.kept / rate
    return f"{max(length, 1e-6):.6f}s"


def evaluate(candidate: Candidate, slices: Sequence[Slice], wanted: Wanted) -> list[dict[str, Any]]:
    """A row for each variant of a candidate, keys as in docs/plan.md; `refused` where it cannot be searched."""
    try:
        bounds = {place: bound_of(candidate, each) for place, each in enumerate(slices)}
        binding = min(bounds, key=lambda place: bounds[place].rate / slices[place].rate)
        question = question_of(candidate, slices[binding], wanted, bounds[binding].rate)
        answers = hopeless(question, slices[binding], bounds[binding].rate) or answer.find(question)[0]
    except BadInput as error:
        return [row(candidate) | {"refused": str(error)}]
    where = slices[binding]
    shares = token_shares(candidate, where)
    found = []
    for one in answers:
        scenario = one.variant.scenario
        full = full_batch(scenario, load_of(where))
        found.append(
            row(candidate)
            | capped(content.of_answer(question, one), scenario, where)
            | {
                "slice": binding,
                "pages": scenario.engine.pages,
                "page_size": scenario.engine.page_size,
                "bound_per_s": full.rate,
                "batch": full.batch,
                "batch_bound_by": full.bound_by,
                "step_parts": dict(full.parts),
                "token_shares": shares,
            }
        )
    return found


def hopeless(question: Question, where: Slice, most: float) -> list[answer.Answer]:
    """The answer that no rate is met, if requests that are almost alone miss an objective; else none."""
    compared = variants(question)
    if len(compared) > 1:
        return []
    point = judged(compared[0], question, piece(where, BEGIN * most), ALONE * most)
    if point.met is not False:
        return []
    nothing = SlowEnd(unknown="requests alone miss the objectives")
    return [answer.Answer(compared[0], None, point, (point,), None, slow=nothing)]


def judged(variant: Variant, question: Question, stretches: str, at: float) -> Point:
    """The verdict of the capacity search at one value."""
    finder = Finder(variant, question, stretches, Workers(question.jobs), lambda _: None)
    finder.good(at)
    return finder.point(at)


def capped(found: dict[str, Any], scenario: Scenario, where: Slice) -> dict[str, Any]:
    """An answer whose rates are no higher than a full batch bears: a run of minutes does not show a slow overload."""
    most = full_batch(scenario, load_of(where))
    if (found["at"] or 0) > most.rate:
        found |= {"at": most.rate, "missed": None, "bound_by": most.bound_by, "binding": None}
    slow = found["slow_end"]
    if slow["unknown"] is None:
        least = full_batch(scenario, load_of(where), uncertainty.slow(scenario))
        if (slow["at"] or 0) > least.rate:
            slow["at"] = least.rate
    return found


def full_batch(scenario: Scenario, load: Load, price: StepCost | None = None) -> Bound:
    """The most that a replica could bear. Raises BadInput for an engine without batches of prompts and decodes."""
    found = build.bounds(scenario, load, price)
    if found is None:
        with scenario.blamed("engine: "):
            raise ValueError("it has no full batch of prompts and decodes")
    return found[0][0]


def load_of(where: Slice, prompt: float = 1, output: float = 1, held: float = 1) -> Load:
    """The mean lengths of a slice, each times a factor."""
    return Load(where.prompt * prompt, where.output * output, where.held * held)


def row(candidate: Candidate) -> dict[str, Any]:
    """What identifies a candidate."""
    return {
        "name": candidate.name,
        "gpu": candidate.gpu,
        "tensor_parallel": candidate.tensor_parallel,
        "engine": candidate.engine,
        "refused": candidate.refused,
    }


def bound_of(candidate: Candidate, where: Slice, prompt: float = 1, output: float = 1, held: float = 1) -> Bound:
    """The most that a replica could bear of a slice, with prompts, outputs and context longer by these factors."""
    scenario = parse({**candidate.scenario, "workload": {"requests": [{"output": 1}]}})
    return full_batch(scenario, load_of(where, prompt, output, held))


def token_shares(candidate: Candidate, where: Slice) -> dict[str, float]:
    """Shares of a replica's time by tokens: computing prompts, producing outputs, and holding prompts in the cache.

    In the ratio of what a tenth more of each would add to the time of a request with a full batch.
    """
    least = 1 / bound_of(candidate, where).rate
    longer = 1 + MARGIN
    prompts = where.prompt / where.held
    added = {
        "computed": 1 / bound_of(candidate, where, prompt=longer).rate - least,
        "output": 1 / bound_of(candidate, where, output=longer, held=1 + MARGIN * (1 - min(prompts, 1))).rate - least,
        "held": 1 / bound_of(candidate, where, held=1 + MARGIN * min(prompts, 1)).rate - least,
    }
    whole = sum(max(each, 0.0) for each in added.values())
    return {name: max(each, 0.0) / whole if whole else 1 / 3 for name, each in added.items()}


def together(candidate: Candidate, where: Slice, wanted: Wanted, replicas: int, rate: float) -> Mapping[str, Any]:
    """All replicas of a candidate simulated together at a rate: the point, as `capacity` judges it."""
    settings = at_rate(scenario_of(candidate, where), rate)
    question = Question(
        scenario=parse(settings, name=str(candidate.scenario["name"])),
        find="replicas",
        objectives=wanted.objectives,
        policies=wanted.policies[:1],
        slots=wanted.slots[:1],
        budgets=wanted.budgets[:1],
        confidence=wanted.confidence,
        seeds=SEEDS,
        jobs=1,
    )
    (variant,) = variants(question)
    point = judged(variant, question, piece(where, rate), replicas)
    return {
        "rate": rate,
        "replicas": replicas,
        "met": point.met,
        "stable": point.stable,
        "runs": len(point.trials),
        "objectives": [content.of_judged(each) for each in point.judged],
    }
