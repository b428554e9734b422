"""The result of a capacity search in the form of `slotstep capacity --json`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from reports.statistics.intervals import Estimate
from reports.text.capacity import sentences
from slotstep.experiments.capacity.answer import Answer
from slotstep.experiments.capacity.judge import Judged, Point
from slotstep.experiments.capacity.question import Question
from slotstep.experiments.capacity.spread import SURE, Spread

LEDGER = "slot_seconds"


def content_of(question: Question, answers: Sequence[Answer], stretches: str | None) -> dict[str, Any]:
    """The whole result; times in seconds, null for what is unbounded or unknown."""
    content: dict[str, Any] = {
        "scenario": question.scenario.name,
        "find": question.find,
        "objectives": [objective.text for objective in question.objectives],
        "from": question.scenario.objectives.since,
        "held_back": question.scenario.holds_back,
        "confidence": question.confidence,
        "seeds": question.seeds,
        "tolerance": question.tolerance,
        "resampled": stretches,
        "price": question.price,
        "best": best(question, answers),
        "answers": [of_answer(question, answer) for answer in answers],
    }
    return {**content, "sentences": sentences(content)}


def best(question: Question, answers: Sequence[Answer]) -> int | None:
    """The position of the best answer: the largest rate, or the fewest replicas; the first of equals."""
    sign = -1 if question.find == "replicas" else 1
    known = [(place, answer.knee.at) for place, answer in enumerate(answers) if answer.knee is not None]
    return max(known, key=lambda found: sign * found[1])[0] if known else None


def of_answer(question: Question, answer: Answer) -> dict[str, Any]:
    """One variant."""
    variant = answer.variant
    return {
        "policy": variant.policy,
        "profile": variant.profile and variant.profile.name,
        "profile_sha256": variant.profile and variant.profile.sha256,
        "device": variant.device,
        "slots": variant.slots,
        "token_budget": variant.budget,
        "at": answer.knee and answer.knee.at,
        "next": answer.beyond and answer.beyond.at,
        "missed": answer.missed,
        "slow_end": answer.slow and asdict(answer.slow),
        "uncertainty": answer.spread and of_spread(answer.spread, question.find == "replicas"),
        "binding": answer.binding,
        "bound_by": answer.bound_by,
        "devices": answer.knee and answer.knee.trials[0].devices,
        "knee": answer.knee and of_point(answer, answer.knee),
        "curve": [of_point(answer, point) for point in answer.curve],
    }


def of_spread(spread: Spread, replicas: bool) -> dict[str, Any]:
    """The answers under draws of the step cost: a 90% interval, and what is sure at 95%."""
    return {
        "draws": len(spread.found),
        "failed": spread.failed,
        "low": spread.quantile(1 - SURE, replicas),
        "high": spread.quantile(SURE, replicas),
        "sure": spread.sure(replicas),
        "source": spread.source,
    }


def of_point(answer: Answer, point: Point) -> dict[str, Any]:
    """One point; numbers of runs are means."""
    return {
        "at": point.at,
        "met": point.met,
        "stable": point.stable,
        "unstable_runs": point.unstable,
        "runs": len(point.trials),
        "binding": point.binding,
        "objectives": [of_judged(each) for each in point.judged],
        "occupancy": point.average("occupancy"),
        "finished_per_s": point.average("rates", "finished_per_s"),
        "output_tokens_per_s": point.average("rates", "output_tokens_per_s"),
        "preemptions": point.average("preemptions"),
        "cost_per_million_output_tokens": answer.cost(point),
        "waited_for": point.waited,
        "slot_seconds": {row: point.average(LEDGER, row) for row in point.trials[0].summary[LEDGER]},
    }


def of_judged(each: Judged) -> dict[str, Any]:
    """One objective at one point, with one-sided bounds."""
    return {
        "objective": each.objective.text,
        "limit": each.objective.limit,
        "met": each.met,
        **bounds(each.value),
        "late": each.late and each.late.value,
        **{f"late_{key}": value for key, value in bounds(each.late).items() if key != "value"},
        "late_allowed": each.objective.allowed,
    }


def bounds(estimate: Estimate | None) -> dict[str, float | None]:
    """An estimate's value, low and high."""
    if estimate is None:
        return dict.fromkeys(("value", "low", "high"))
    found = {"value": estimate.value, "low": estimate.low, "high": estimate.high}
    return {name: value if math.isfinite(value) else None for name, value in found.items()}
