"""`slotstep check`: whether scenarios still have the metrics that a baseline records."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slotstep.cli.params import Kernel, Settings, Yes, permitted

if TYPE_CHECKING:
    from reports.checks.outcome import Outcome
    from slotstep.experiments.checks.baseline import Baseline
    from slotstep.experiments.checks.running import Checked


def check(
    baseline: Annotated[
        Path, typer.Argument(metavar="BASELINE", help="The scenarios and their recorded metrics, YAML.")
    ],
    update: Annotated[bool, typer.Option("--update", help="Record what the metrics are now.")] = False,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="NAME", help="Run this check alone. May be repeated.")
    ] = None,
    settings: Settings = None,
    junit: Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML here too.")] = None,
    markdown: Annotated[
        Path | None, typer.Option("--markdown", metavar="FILE", help="Write a summary in Markdown here too.")
    ] = None,
    github: Annotated[
        bool,
        typer.Option("--github", help="In a GitHub workflow: mark differences, and add the Markdown to its summary."),
    ] = False,
    yes: Yes = False,
    kernel: Kernel = None,
) -> None:
    """Run the scenarios of a baseline and compare their metrics with the recorded ones.

    Exit code 0 if all are as recorded, 1 if one differs, 2 if a check cannot be run.
    """
    from reports import files
    from reports.checks.github import summary
    from reports.checks.junit import junit as xml
    from reports.checks.outcome import exit_code
    from reports.checks.text import text
    from slotstep.experiments.checks import baseline as baselines
    from slotstep.experiments.checks import running, scenarios

    if update and settings:
        from traces.errors import BadInput

        raise BadInput("--update with --set: would record what the scenarios do not give; expected one of them")
    kept = baselines.read(baseline)
    chosen = selected(kept, baseline, only or [])
    recorded = scenarios.read(baseline)
    checked = running.run_checks(chosen, baseline.parent, recorded, permitted(settings, yes))
    found = [one.outcome for one in checked]
    print(text(found), flush=True)
    if junit is not None:
        files.write_text(junit, xml(str(baseline), found))
    if markdown is not None:
        files.write_text(markdown, summary(str(baseline), found))
    if github:
        mark(baseline, found)
    code = exit_code(found)
    if update and code < 2:
        code = record(baseline, checked, {name: one for name, one in recorded.items() if name in kept.checks})
    raise typer.Exit(code)


def mark(baseline: Path, found: Sequence[Outcome]) -> None:
    """Print annotations for a GitHub workflow, and add the Markdown to its summary where it has one."""
    from reports import files
    from reports.checks.github import error_marks, summary
    from slotstep.experiments.checks import recording

    text = baseline.read_text("utf-8-sig")
    marks = error_marks(str(baseline), found, lambda name, metric: recording.line(text, name, metric))
    if marks:
        print(marks, flush=True)
    target = os.environ.get("GITHUB_STEP_SUMMARY")
    if target:
        before = Path(target).read_text() if Path(target).exists() else ""
        files.write_text(Path(target), before + summary(str(baseline), found))


def record(baseline: Path, checked: Sequence[Checked], recorded: Mapping[str, Mapping[str, Any]]) -> int:
    """Record values and scenarios as they are now; returns the exit code: 1 if a limit is not kept, which stays."""
    from reports import files
    from reports.checks.outcome import counted
    from slotstep.experiments.checks import recording, scenarios

    outcomes = [one.outcome for one in checked]
    moved = [(one.name, metric) for one in outcomes for metric in (*one.differing, *one.improved)]
    changed = [(name, metric.metric, metric.now) for name, metric in moved if not metric.limited]
    if changed:
        files.write_text(baseline, recording.recorded(baseline.read_text("utf-8-sig"), changed))
        print(f"{counted(len(changed), 'value')} recorded in {baseline}")
    now = {**recorded, **{one.outcome.name: one.scenario for one in checked}}
    target = scenarios.path_of(baseline)
    if now != scenarios.read(baseline):
        files.write_text(target, scenarios.text(baseline, now))
        print(f"scenarios recorded in {target}")
    return int(len(changed) < len(moved))


def selected(baseline: Baseline, path: Path, names: list[str]) -> Baseline:
    """The checks of these names, or all. Raises BadInput for an unknown name."""
    from traces.errors import BadInput

    unknown = [name for name in names if name not in baseline.checks]
    if unknown:
        raise BadInput(f"{path}: no check is named {unknown[0]}; there are {', '.join(baseline.checks)}")
    if not names:
        return baseline
    return baseline.model_copy(update={"checks": {name: baseline.checks[name] for name in names}})
