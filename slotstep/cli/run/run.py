"""`slotstep run`: a scenario simulated."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slotstep.cli.output import open_scenario, print_json, say, show
from slotstep.cli.params import (
    AsJson,
    BundleFile,
    Jobs,
    Kernel,
    OutFolder,
    PolicyName,
    RequestsFile,
    ScenarioFile,
    Settings,
    Yes,
    permitted,
)
from slotstep.cli.run.simulating import bundle_runs, simulate

if TYPE_CHECKING:
    from slotstep.scenario.schema import Scenario


def run(
    scenario: ScenarioFile,
    settings: Settings = None,
    policy: PolicyName = None,
    trace: RequestsFile = None,
    out: OutFolder = None,
    bundle: BundleFile = None,
    as_json: AsJson = False,
    openmetrics: Annotated[
        Path | None,
        typer.Option("--openmetrics", metavar="FILE", help="Write its counters as a running engine shows them."),
    ] = None,
    forward_pass_metrics: Annotated[
        Path | None,
        typer.Option(metavar="FILE.jsonl", help="Write forward-pass metrics: a record a step."),
    ] = None,
    uncertainty: Annotated[
        int | None,
        typer.Option(metavar="N", help="Run it under N draws of its step cost besides, and print intervals."),
    ] = None,
    jobs: Jobs = None,
    yes: Yes = False,
    kernel: Kernel = None,
) -> None:
    """Simulate a scenario and say where its slots, pages and time went."""
    loaded = open_scenario(scenario, permitted(settings, yes), trace, policy)
    named = [file for file in (openmetrics, forward_pass_metrics, bundle) if file]
    folders = [*([out] if out else []), *(file.parent for file in named)]
    (result,) = simulate([loaded], folders)
    if out:
        result.save(out)
        say(f"written to {out}")
    if bundle:
        bundle_runs(bundle, [result])
    if openmetrics:
        from reports import files
        from reports.exports.openmetrics import exposition

        files.write_text(openmetrics, exposition(result.logs, loaded.name))
    if forward_pass_metrics:
        from reports import files
        from reports.exports.forward_pass import lines

        files.write_lines(forward_pass_metrics, lines(result.logs))
    found = None if uncertainty is None else intervals_of(loaded, uncertainty, jobs)
    if out and found:
        from reports import files

        files.write_json(out / "uncertainty.json", found)
    if as_json:
        print_json(result.summary | ({} if found is None else {"uncertainty": found}))
    else:
        from reports.text.ledger_bar import ledger_bar
        from reports.text.run_summary import summary_table

        show(summary_table(result.summary), ledger_bar(result.summary))
        if found is not None:
            from reports.text.uncertainty import uncertainty_table

            show(uncertainty_table(result.summary, found))


def intervals_of(scenario: Scenario, count: int, jobs: int | None) -> dict[str, Any]:
    """Intervals of the scenario's metrics under draws of its step cost, with a progress bar."""
    from slotstep.cli.progress import Meter
    from slotstep.experiments.uncertainty import intervals

    with Meter("uncertainty", count, "draws") as meter:
        return intervals(scenario, count, jobs, meter)
