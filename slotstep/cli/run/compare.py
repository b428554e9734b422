"""`slotstep compare`: several policies on the same requests, on one seed or on several."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slotstep.cli.output import open_scenario, print_json, say, show
from slotstep.cli.params import AsJson, OutFolder, RequestsFile, ScenarioFile, Settings, Yes, permitted
from slotstep.cli.run.simulating import simulate

if TYPE_CHECKING:
    from slotstep.scenario.schema import Scenario


def compare(
    scenario: ScenarioFile,
    policies: Annotated[
        str,
        typer.Option(
            metavar="NAME,NAME,...",
            help="The policies; the scenario's own keeps its options, the others take their defaults.",
        ),
    ],
    settings: Settings = None,
    trace: RequestsFile = None,
    out: OutFolder = None,
    as_json: AsJson = False,
    seeds: Annotated[
        int | None,
        typer.Option(min=2, help="Repeat on this many seeds: intervals, and significant differences."),
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Seeds at once; as many as there are cores.")] = None,
    yes: Yes = False,
) -> None:
    """Simulate several policies on the same requests and compare them."""
    from slotstep.runs.resolution import with_policy
    from slotstep.runs.result import save_all

    loaded = open_scenario(scenario, permitted(settings, yes), trace)
    names = policy_names(policies)
    if seeds is not None:
        replicate(loaded, names, seeds, jobs, out, as_json)
        return
    if jobs is not None:
        raise typer.BadParameter("needs --seeds", param_hint="--jobs")
    scenarios = [with_policy(loaded, name) for name in names]
    results = simulate(scenarios, [out / name for name in names] if out else [])
    if out:
        save_all(results, out)
        say(f"written to {out}")
    summaries = [result.summary for result in results]
    if as_json:
        print_json({"runs": summaries})
    else:
        from reports.text.comparison import comparison_table

        show(comparison_table(summaries))


def policy_names(listed: str) -> list[str]:
    """The names of a comma-separated list. Raises BadInput for an empty or a repeated name."""
    from traces.errors import BadInput

    names = [name.strip() for name in listed.split(",")]
    if not all(names):
        raise BadInput(f"--policies {listed}: expected names separated by commas, such as fcfs,sjf,fair")
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated:
        raise BadInput(f"--policies {listed}: {repeated} is there twice; expected each policy once")
    return names


def replicate(
    scenario: Scenario, names: Sequence[str], seeds: int, jobs: int | None, out: Path | None, as_json: bool
) -> None:
    """Compare policies over several seeds; writes replications.json into `out`."""
    from reports import files
    from reports.text.replications import replications_json, replications_table
    from slotstep.cli.progress import Meter
    from slotstep.experiments.replications import replicate as repeated
    from slotstep.runs.result import prepare

    if out:
        prepare(out)
    with Meter("seeds", seeds, "seeds") as meter:
        found = repeated(scenario, names, seeds, jobs, meter)
    content = {"scenario": scenario.name, **replications_json(found)}
    if out:
        say(f"written to {files.write_json(out / 'replications.json', content)}")
    if as_json:
        print_json(content)
    else:
        show(replications_table(found))
