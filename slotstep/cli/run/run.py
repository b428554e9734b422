"""`slotstep run`: a scenario simulated."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from slotstep.cli.output import open_scenario, print_json, say, show
from slotstep.cli.params import AsJson, OutFolder, PolicyName, RequestsFile, ScenarioFile, Settings, Yes, permitted
from slotstep.cli.run.simulating import simulate


def run(
    scenario: ScenarioFile,
    settings: Settings = None,
    policy: PolicyName = None,
    trace: RequestsFile = None,
    out: OutFolder = None,
    as_json: AsJson = False,
    openmetrics: Annotated[
        Path | None,
        typer.Option("--openmetrics", metavar="FILE", help="Write its counters as a running engine shows them."),
    ] = None,
    forward_pass_metrics: Annotated[
        Path | None,
        typer.Option(metavar="FILE.jsonl", help="Write forward-pass metrics: a record a step."),
    ] = None,
    yes: Yes = False,
) -> None:
    """Simulate a scenario and say where its slots, pages and time went."""
    loaded = open_scenario(scenario, permitted(settings, yes), trace, policy)
    folders = [*([out] if out else []), *(file.parent for file in (openmetrics, forward_pass_metrics) if file)]
    (result,) = simulate([loaded], folders)
    if out:
        result.save(out)
        say(f"written to {out}")
    if openmetrics:
        from reports import files
        from reports.exports.openmetrics import exposition

        files.write_text(openmetrics, exposition(result.logs, loaded.name))
    if forward_pass_metrics:
        from reports import files
        from reports.exports.forward_pass import lines

        files.write_lines(forward_pass_metrics, lines(result.logs))
    if as_json:
        print_json(result.summary)
    else:
        from reports.text.ledger_bar import ledger_bar
        from reports.text.run_summary import summary_table

        show(summary_table(result.summary), ledger_bar(result.summary))
