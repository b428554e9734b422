"""`slotstep capacity`: the largest rate, or the fewest replicas, within objectives."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from slotstep.cli.output import open_scenario, print_json, say, show
from slotstep.cli.params import (
    AsJson,
    Jobs,
    Kernel,
    RequestsFile,
    ScenarioFile,
    Settings,
    Yes,
    listed,
    numbers,
    permitted,
)


class Find(StrEnum):
    """The quantity to find."""

    rate = "rate"
    replicas = "replicas"
    slots = "slots"


def capacity(
    scenario: ScenarioFile,
    slo: Annotated[
        list[str] | None,
        typer.Option("--slo", metavar="OBJECTIVE", help="Such as 'p99 ttft < 1s'. May be repeated."),
    ] = None,
    find: Annotated[
        Find,
        typer.Option(
            help="The largest rate; the fewest replicas at the scenario's rate; or the slots with the largest."
        ),
    ] = Find.rate,
    policies: Annotated[str | None, typer.Option(metavar="NAME,...", help="For each of these policies.")] = None,
    profiles: Annotated[str | None, typer.Option(metavar="NAME,...", help="On each of these step costs.")] = None,
    slots: Annotated[str | None, typer.Option(metavar="N,...", help="With each of these numbers of slots.")] = None,
    budgets: Annotated[str | None, typer.Option(metavar="N,...", help="With each of these token budgets.")] = None,
    price: Annotated[float | None, typer.Option(min=0, help="Of a GPU for an hour, in any currency.")] = None,
    confidence: Annotated[float, typer.Option(min=0.5, max=0.9999, help="Of each decision.")] = 0.95,
    seeds: Annotated[int, typer.Option(min=4, help="Most runs at a point.")] = 16,
    tolerance: Annotated[float, typer.Option(min=0.001, max=0.5, help="Relative, of the rate.")] = 0.02,
    resample: Annotated[
        str, typer.Option(metavar="T", help="Block length of a trace's bootstrap: each run draws other blocks.")
    ] = "60s",
    uncertainty: Annotated[
        int, typer.Option(metavar="N", help="Find it again under N draws of the step cost, for an interval.")
    ] = 0,
    settings: Settings = None,
    trace: RequestsFile = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write capacity.json and capacity.png here.")
    ] = None,
    jobs: Jobs = None,
    as_json: AsJson = False,
    yes: Yes = False,
    kernel: Kernel = None,
) -> None:
    """Find the capacity of a scenario within objectives, with its confidence and its bottleneck."""
    from reports import files
    from reports.figures.capacity import capacity_figure
    from reports.figures.png import write_png
    from reports.text.capacity import capacity_table
    from slotstep.cli.progress import SearchProgress
    from slotstep.experiments.capacity import answer
    from slotstep.experiments.capacity.content import content_of
    from slotstep.experiments.capacity.objective import parse
    from slotstep.experiments.capacity.question import Question
    from slotstep.runs.result import prepare

    question = Question(
        scenario=open_scenario(scenario, permitted(settings, yes), trace),
        find=find.value,
        objectives=tuple(parse(text) for text in slo or ()),
        policies=listed("--policies", policies),
        profiles=listed("--profiles", profiles),
        slots=numbers("--slots", slots),
        budgets=numbers("--budgets", budgets),
        confidence=confidence,
        seeds=seeds,
        tolerance=tolerance,
        price=price,
        resample=resample,
        uncertainty=uncertainty,
        jobs=jobs,
    )
    if out:
        prepare(out)
    with SearchProgress("replicas" if find is Find.replicas else "req/s") as progress:
        answers, stretches = answer.find(question, progress)
    content = content_of(question, answers, stretches)
    if out:
        files.write_json(out / "capacity.json", content)
        write_png({"capacity": capacity_figure(content)}, out)
        say(f"written to {out}")
    if as_json:
        print_json(content)
    else:
        show(capacity_table(content))
