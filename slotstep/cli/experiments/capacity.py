"""`slotstep capacity`: how much traffic, or how many replicas, within objectives.

Heavy imports are inside the command.
"""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slotstep.cli.permission import Yes, permitted

if TYPE_CHECKING:
    from slotstep.experiments.capacity.answer import Variant
    from slotstep.experiments.capacity.judge import Point


class Find(StrEnum):
    """What to find."""

    rate = "rate"
    replicas = "replicas"
    slots = "slots"


def register(app: typer.Typer) -> None:
    """Add the command to `slotstep`."""
    app.command()(capacity)


def capacity(
    scenario: Annotated[Path, typer.Argument(help="The scenario, a YAML file.")],
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
        str, typer.Option(metavar="T", help="Of a trace: each run is another draw of stretches so long.")
    ] = "60s",
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a key. May be repeated.")
    ] = None,
    trace: Annotated[
        Path | None, typer.Option("--trace", metavar="FILE", help="Read the requests from FILE.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write capacity.json and capacity.png here.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Runs at once; as many as there are cores.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
    yes: Yes = False,
) -> None:
    """Find how much a scenario bears within objectives, with what confidence, and what binds."""
    from reports import files
    from reports.figures.capacity import capacity_figure
    from reports.figures.png import write_png
    from reports.text.capacity import capacity_table
    from slotstep.experiments.capacity import answer
    from slotstep.experiments.capacity.content import content_of
    from slotstep.experiments.capacity.objective import parse
    from slotstep.runs.result import prepare
    from slotstep.scenario.schema import load

    question = answer.Question(
        scenario=load(scenario, permitted(settings, yes), trace),
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
        jobs=jobs,
    )
    if out:
        prepare(out)
    answers, stretches = answer.find(question, looked)
    content = content_of(question, answers, stretches)
    if out:
        files.write_json(out / "capacity.json", content)
        write_png({"capacity": capacity_figure(content)}, out)
        print(f"written to {out}", file=sys.stderr)
    if as_json:
        print(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False), flush=True)
    else:
        from rich.console import Console

        Console().print(capacity_table(content))


def looked(variant: Variant, point: Point) -> None:
    """Progress, on a terminal: what was found at each point."""
    if sys.stderr.isatty():
        met = {True: "met", False: f"missed: {point.binding}", None: "not known"}[point.met]
        print(f"{variant.policy}, {point.at:.4g}: {met} ({len(point.trials)} runs)", file=sys.stderr)


def listed(option: str, given: str | None) -> tuple[str, ...]:
    """The names of a list with commas; raises BadInput for an empty or a repeated one."""
    from traces.errors import BadInput

    names = tuple(name.strip() for name in given.split(",")) if given is not None else ()
    if not all(names) or len(set(names)) < len(names):
        raise BadInput(f"{option} {given}: expected different names separated by commas")
    return names


def numbers(option: str, given: str | None) -> tuple[int, ...]:
    """The whole numbers of a list with commas; raises BadInput for anything else."""
    from traces.errors import BadInput

    try:
        found = tuple(int(name) for name in listed(option, given))
    except ValueError:
        found = (0,)
    if any(number < 1 for number in found):
        raise BadInput(f"{option} {given}: expected whole numbers of at least 1 separated by commas")
    return found
