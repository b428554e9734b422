"""`slotstep check`: whether scenarios still have the metrics that a baseline records."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slotstep.cli.params import Kernel, Settings, Yes, permitted

if TYPE_CHECKING:
    from slotstep.experiments.checks import Baseline


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
    github: Annotated[bool, typer.Option("--github", help="Mark differences in a GitHub workflow's run.")] = False,
    yes: Yes = False,
    kernel: Kernel = None,
) -> None:
    """Run the scenarios of a baseline and compare their metrics with the recorded ones.

    Exit code 0 if all are as recorded, 1 if one differs, 2 if a check cannot be run.
    """
    from reports import files
    from reports.text import checks
    from slotstep.experiments import checks as baselines

    if update and settings:
        from traces.errors import BadInput

        raise BadInput("--update with --set: would record what the scenarios do not give; expected one of them")
    checked = chosen(baselines.read(baseline), baseline, only or [])
    found = baselines.outcomes(checked, baseline.parent, permitted(settings, yes))
    print(checks.text(found), flush=True)
    text = baseline.read_text("utf-8-sig")
    if junit is not None:
        files.write_text(junit, checks.junit(str(baseline), found))
    if github and checks.exit_code(found):
        print(
            checks.github(str(baseline), found, lambda name, metric: baselines.line(text, name, metric)), flush=True
        )
    code = checks.exit_code(found)
    if update and code == 1:
        changed = [(one.name, metric.metric, metric.now) for one in found for metric in one.differing]
        files.write_text(baseline, baselines.recorded(text, changed))
        print(f"{checks.counted(len(changed), 'value')} recorded in {baseline}")
        code = 0
    raise typer.Exit(code)


def chosen(baseline: Baseline, path: Path, names: list[str]) -> Baseline:
    """The checks of these names, or all. Raises BadInput for an unknown name."""
    from traces.errors import BadInput

    unknown = [name for name in names if name not in baseline.checks]
    if unknown:
        raise BadInput(f"{path}: no check is named {unknown[0]}; there are {', '.join(baseline.checks)}")
    if not names:
        return baseline
    return baseline.model_copy(update={"checks": {name: baseline.checks[name] for name in names}})
