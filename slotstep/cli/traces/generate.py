"""`slotstep trace generate`: the requests of a scenario as a trace."""

from __future__ import annotations

from slotstep.cli.output import open_scenario
from slotstep.cli.params import ScenarioFile, Settings, TargetFile, TargetFormat, Yes, permitted
from slotstep.cli.traces.reading import report_losses


def generate(
    scenario: ScenarioFile,
    out: TargetFile,
    settings: Settings = None,
    to: TargetFormat = None,
    yes: Yes = False,
) -> None:
    """Write the requests of a scenario as a trace."""
    from slotstep.runs import workload
    from traces import writers
    from traces.reading.tabulate import tabulate

    loaded = open_scenario(scenario, permitted(settings, yes))
    made = workload.load(loaded)
    trace, lost = tabulate(made.requests, made.sessions, str(scenario))
    report_losses([*made.remarks, *lost, *writers.write(trace, out, to)], out)
