"""`slotstep plan`: from a log to the number of GPUs, of which kind, at what price, and how sure."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slotstep.cli.output import print_json, say, show
from slotstep.cli.params import AsJson, Columns, Jobs, RunName, TraceFile, TraceFormat, listed, numbers

if TYPE_CHECKING:
    from slotstep.planning.plan import Plan

INTERRUPTED = 130


def plan(
    log: TraceFile,
    model: Annotated[str, typer.Option("--model", metavar="NAME|FILE", help="A model's name, or its config.json.")],
    gpus: Annotated[str, typer.Option("--gpus", metavar="NAME,...", help="The GPUs to compare.")],
    slo: Annotated[
        list[str], typer.Option("--slo", metavar="OBJECTIVE", help="Such as 'p99 ttft < 1s'. May be repeated.")
    ],
    prices: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Prices of the GPUs; examples/prices.yaml is a template.")
    ] = None,
    growth: Annotated[str, typer.Option(metavar="X,...", help="Multiples of today's traffic to plan for.")] = "1",
    engines: Annotated[
        str, typer.Option(metavar="NAME,...", help="Engines to compare: vllm, sglang, trtllm.")
    ] = "vllm",
    tensor_parallel: Annotated[
        str | None, typer.Option(metavar="N,...", help="GPUs that share a model; the smallest that fit if not given.")
    ] = None,
    dtype: Annotated[str | None, typer.Option(help="Of the weights, as fp8; as published if not given.")] = None,
    slots: Annotated[str | None, typer.Option(metavar="N,...", help="With each of these numbers of slots.")] = None,
    budgets: Annotated[str | None, typer.Option(metavar="N,...", help="With each of these token budgets.")] = None,
    policies: Annotated[str | None, typer.Option(metavar="NAME,...", help="Under each of these policies.")] = None,
    confidence: Annotated[float, typer.Option(min=0.5, max=0.9999, help="Of each decision.")] = 0.95,
    replay_throttled: Annotated[
        bool,
        typer.Option(
            "--replay-throttled", help="Count throttled requests in, with outputs drawn from finished ones."
        ),
    ] = False,
    kind: TraceFormat = None,
    columns: Columns = None,
    run: RunName = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Write plan.json, plan.html, the slices and the scenarios here."),
    ] = None,
    jobs: Jobs = None,
    as_json: AsJson = False,
) -> None:
    """Plan a service for the traffic of a log: GPUs, of which kind, at what price, and how sure that is."""
    from slotstep.planning.question import ask
    from slotstep.runs.result import prepare

    if out is not None:
        prepare(out)
    began = time.monotonic()

    def progress(line: str) -> None:
        say(f"{time.monotonic() - began:4.0f} s  {line}")

    with tempfile.TemporaryDirectory() as scratch:
        asked = ask(
            log,
            out or Path(scratch),
            model=model,
            gpus=listed("--gpus", gpus),
            objectives=slo,
            prices=prices,
            growths=growth,
            engines=listed("--engines", engines),
            degrees=numbers("--tensor-parallel", tensor_parallel),
            dtype=dtype,
            slots=numbers("--slots", slots),
            budgets=numbers("--budgets", budgets),
            policies=listed("--policies", policies),
            confidence=confidence,
            kind=kind,
            columns=columns,
            run=run,
            replay_throttled=replay_throttled,
            say=say,
        )
        try:
            asked.find(jobs, progress)
        except KeyboardInterrupt:
            asked.sort()
            finish(asked, out, as_json, complete=False)
            say("interrupted: the candidates above were looked at, the others were not")
            sys.exit(INTERRUPTED)
        finish(asked, out, as_json, complete=True)


def finish(found: Plan, out: Path | None, as_json: bool, complete: bool) -> None:
    """Print a plan, and write it into `out`."""
    from reports import files
    from reports.text.plan import plan_table
    from slotstep.scenario import document

    content = found.content(complete)
    if out is not None:
        for name, scenario in found.scenarios():
            files.write_text(out / f"{name}.yaml", document.dump(scenario))
        files.write_json(out / "plan.json", content)
        write_page(out)
        say(f"written to {out}")
    if as_json:
        print_json(content)
    else:
        show(plan_table(content))


def write_page(out: Path) -> None:
    """The page of a plan."""
    from importlib.metadata import version

    from reports import files
    from reports.page.html import page
    from slotstep.report_input.plan import plan as story

    files.write_text(out / "plan.html", page(story(out), version("slotstep")))
