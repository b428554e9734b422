"""Measured runs predicted and judged: rows of single statistics, and a line per run against its bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from benchmarks.fidelity.rows import Row
from calibrate.fit.measured_run import MeasuredRun
from sim.cost.forms import Curve
from slotstep.validation.measured_runs import Run
from slotstep.validation.provenance import coefficients
from slotstep.validation.validation import compared_run

ENGINES = Path(__file__).parent / "engines"


@dataclass(frozen=True)
class Judged:
    """A predicted run: its rows, its part (fitted or held out), and which of the bounds it misses."""

    run: str
    part: str
    rows: tuple[Row, ...]
    misses: tuple[str, ...]


def judge(
    suite: str, run: Run, part: str, cost: Curve, delay: int, bounds: Mapping[tuple[str, str], float], fitted: str
) -> Judged:
    """A run predicted whole at a cost, every metric by itself, and the bounds (metric, statistic) that it misses."""
    found = compared_run(run.at(cost, delay)).content
    rows = [
        Row(suite, run.name, metric, statistic, of[statistic]["measured"], of[statistic]["predicted"], fitted)
        for metric, of in found["metrics"].items()
        for statistic in ("mean", "p50", "p99")
    ]
    rate = found["requests_per_s"]
    rows.append(Row(suite, run.name, "throughput", "1/s", rate["measured"], rate["predicted"], fitted))
    errors = {(row.metric, row.statistic): row.error for row in rows}
    misses = tuple(
        f"{metric.removesuffix('_s')} {statistic} {errors[metric, statistic]:+.1%}"
        for (metric, statistic), bound in bounds.items()
        if (metric, statistic) in errors and abs(errors[metric, statistic]) > bound
    )
    return Judged(run.name, part, tuple(rows), misses)


def judged_table(judged: Sequence[Judged], columns: Sequence[tuple[str, str]]) -> str:
    """A line per run: the errors of the columns (metric, statistic), and what it misses."""
    heads = [
        f"{metric.removesuffix('_s').upper() if metric.endswith('_s') else metric} {which}"
        for metric, which in columns
    ]
    lines = ["| run | | " + " | ".join(heads) + " | misses |", "|---|---|" + "---:|" * len(columns) + "---|"]
    for each in judged:
        errors = {(row.metric, row.statistic): row.error for row in each.rows}
        errors_shown = [f"{errors[column]:+.1%}" if column in errors else "" for column in columns]
        lines.append(f"| {each.run} | {each.part} | " + " | ".join(errors_shown) + f" | {', '.join(each.misses)} |")
    return "\n".join(lines) + "\n"


def amplified(of: Sequence[Run], judged: Sequence[Judged], cost: Curve, delay: int) -> str:
    """For each run that misses a bound, a line: by how much its median E2E grows when every step takes 1% longer."""
    terms = {term: 1.01 * value for term, value in coefficients(cost).items()}
    slower = replace(cost, **terms)
    missed = {each.run for each in judged if each.misses}
    lines = ""
    for run in of:
        if run.name in missed:
            now, then = (run.at(price, delay).result().requests["e2e_s"].median() for price in (cost, slower))
            grown = float(then / now - 1)
            lines += f"- {run.name}: steps that take 1% longer make its median E2E {grown:.1%} longer.\n"
    return lines


def part_of(run: Run, start_s: float, end_s: float, unjudged: int = 0) -> MeasuredRun:
    """The requests of a run that were sent between two instants, as a measured run to fit.

    The engine is assumed empty when the part begins; the first `unjudged` requests fill its cache and are not
    compared, and neither are the last of it (`MeasuredRun.settled`).
    """
    arrivals = pd.Series([request.arrival for request in run.made.requests])
    chosen = (arrivals >= start_s * 1e9) & (arrivals < end_s * 1e9)
    first = int(arrivals[chosen].min())
    asked = [
        replace(request, arrival=request.arrival - first)
        for request, inside in zip(run.made.requests, chosen, strict=True)
        if inside
    ]
    rank = {request.id: place for place, request in enumerate(asked)}
    frame = run.frame[run.frame["id"].isin(rank)]
    frame = frame.assign(rank=frame["id"].map(rank))
    frame = frame[frame["rank"] >= unjudged]
    part = replace(run, made=replace(run.made, requests=asked), frame=frame).for_fit()
    return replace(part, name=f"{run.name}, {start_s:g} to {end_s:g} s")
