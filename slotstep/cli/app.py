"""The command line: `slotstep run`, `slotstep compare`, `slotstep parity`, `slotstep trace fetch`.

Answers go to standard output, all else to standard error. What is wrong with an input is one line and exit
code 2; a fault of slotstep's own is a traceback and exit code 1. Heavy imports are inside the commands.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slotstep.cli.calibrate import composed, group, profiles
from slotstep.cli.experiments import capacity, check, study, sweep
from slotstep.cli.permission import Yes, permitted
from slotstep.cli.reports import policies as policy_commands
from slotstep.cli.reports import report as report_commands
from slotstep.cli.run import replay, validate
from slotstep.cli.traces import traces
from slotstep.cli.watch import watch

if TYPE_CHECKING:
    from rich.console import RenderableType

    from slotstep.runs.result import Result
    from slotstep.scenario.schema import Scenario

app = typer.Typer(
    help="What did the slots of an LLM serving engine do, and what would they do under another policy?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
traces_app = typer.Typer(help="Public request traces.", no_args_is_help=True)
app.add_typer(traces_app, name="trace")
app.add_typer(group.calibrate_app, name="calibrate")
app.command()(policy_commands.policies)
app.command()(profiles.profiles)
app.command()(composed.pages)
app.command()(replay.replay)
app.command()(validate.validate)
app.command()(report_commands.report)
app.command()(check.check)
app.command()(watch.watch)
traces.register(traces_app)
sweep.register(app)
app.command()(study.study)
capacity.register(app)

INTERRUPTED = 130
"""The exit code after Ctrl-C, by a shell's convention."""

ScenarioFile = Annotated[Path, typer.Argument(help="The scenario, a YAML file.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key, as in engine.slots=8. May be repeated."),
]
TraceFile = Annotated[
    Path | None,
    typer.Option(
        "--trace",
        metavar="FILE",
        help="Read the requests from FILE instead, in the format of the scenario's trace, or found out if "
        "its workload is none; the workload's scale_rate, first, between and max_output still apply.",
    ),
]
Folder = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Write summary, tables, resolved scenario and figures here."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0, 2 for bad input, 130 on Ctrl-C, 1 for a fault of slotstep's own."""
    from traces.errors import BadInput

    try:
        app(arguments)
    except BadInput as error:
        refuse(str(error))
    except OSError as error:
        refuse(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except SystemExit as ended:
        if ended.code == INTERRUPTED:
            print("interrupted", file=sys.stderr)
        raise


def refuse(reason: str) -> None:
    """Say on one line what is wrong with the input, and exit with 2."""
    print("error:", " ".join(reason.split()), file=sys.stderr)
    sys.exit(2)


def print_version(wanted: bool) -> None:
    """Print the version and exit, if it is wanted."""
    if wanted:
        print(f"slotstep {version('slotstep')}")
        raise typer.Exit


@app.callback()
def options(
    _: Annotated[
        bool,
        typer.Option("--version", callback=print_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """The options that every command shares."""


@app.command()
def run(
    scenario: ScenarioFile,
    settings: Settings = None,
    policy: Annotated[
        str | None, typer.Option(metavar="NAME", help="Run under this policy instead of the scenario's.")
    ] = None,
    trace: TraceFile = None,
    out: Folder = None,
    as_json: AsJson = False,
    openmetrics: Annotated[
        Path | None,
        typer.Option("--openmetrics", metavar="FILE", help="Write its counters as a running engine shows them."),
    ] = None,
    yes: Yes = False,
) -> None:
    """Simulate a scenario and say where its slots, pages and time went."""
    loaded = open_scenario(scenario, permitted(settings, yes), trace)
    if policy is not None:
        loaded = loaded.with_policy(policy)
    (result,) = simulate([loaded], [*([out] if out else []), *([openmetrics.parent] if openmetrics else [])])
    if out:
        result.save(out)
        say(f"written to {out}")
    if openmetrics:
        from reports import files
        from reports.exports.openmetrics import exposition

        files.write_text(openmetrics, exposition(result.logs, loaded.name))
    if as_json:
        print_json(result.summary)
    else:
        from reports.text.ledger_bar import ledger_bar
        from reports.text.run_summary import summary_table

        show(summary_table(result.summary), ledger_bar(result.summary))


@app.command()
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
    trace: TraceFile = None,
    out: Folder = None,
    as_json: AsJson = False,
    seeds: Annotated[
        int | None,
        typer.Option(min=2, help="Repeat on so many seeds, and say what is more than luck: intervals and verdicts."),
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Seeds at once; as many as there are cores.")] = None,
    yes: Yes = False,
) -> None:
    """Simulate several policies on the same requests and compare them."""
    from slotstep.runs.result import save_all

    loaded = open_scenario(scenario, permitted(settings, yes), trace)
    names = policy_names(policies)
    if seeds is not None:
        replicate(loaded, names, seeds, jobs, out, as_json)
        return
    if jobs is not None:
        raise typer.BadParameter("needs --seeds", param_hint="--jobs")
    scenarios = [loaded.with_policy(name) for name in names]
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


@app.command()
def parity(
    case: Annotated[Path, typer.Argument(help="The requests and the engine's options, JSON, plain or gzipped.")],
    log: Annotated[Path, typer.Argument(help="What the engine decided, JSON lines, plain or gzipped.")],
) -> None:
    """Replay a case and compare every decision with an engine's log; exit code 1 if any differs."""
    from slotstep.parity import parity as comparison

    report = comparison.check(case, log)
    print(*comparison.lines_of(report), sep="\n", flush=True)
    if report.mismatches:
        raise typer.Exit(1)


@traces_app.command()
def fetch(
    name: Annotated[str, typer.Argument(help="Such as azure-2023-conv or mooncake-conversation.")],
) -> None:
    """Download a public trace, check it, print its file.

    Nothing is downloaded if it is there already. The cache is $SLOTSTEP_CACHE, else ~/.cache/slotstep.
    """
    from traces.reading.fetch import fetch as download

    print(download(name))


def open_scenario(path: Path, settings: Sequence[str] | None, trace: Path | None) -> Scenario:
    """The scenario of a file with the overrides of the command line."""
    from slotstep.scenario.schema import load

    return load(path, settings or (), trace)


def policy_names(listed: str) -> list[str]:
    """The names in a comma-separated list; raises BadInput for none, an empty or a repeated one."""
    from traces.errors import BadInput

    names = [name.strip() for name in listed.split(",")]
    if not all(names):
        raise BadInput(f"--policies {listed}: expected names separated by commas, such as fcfs,sjf,fair")
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated:
        raise BadInput(f"--policies {listed}: {repeated} is there twice; expected each policy once")
    return names


def simulate(scenarios: Sequence[Scenario], folders: Sequence[Path]) -> list[Result]:
    """Run the same requests under scenarios that differ in policy; `folders` are tried before the first."""
    from slotstep.cli.progress import Meter
    from slotstep.runs import build
    from slotstep.runs.result import prepare
    from slotstep.runs.workload import load

    workload = load(scenarios[0])
    for remark in workload.remarks:
        say(remark)
    for folder in folders:
        prepare(folder)
    results = []
    for scenario in scenarios:
        with Meter(scenario.policy.name, len(workload.requests)) as meter:
            results.append(build.run(scenario, workload, meter))
    for remark in dict.fromkeys(line for result in results for line in result.beyond_the_end):
        say(remark)
    return results


def replicate(
    scenario: Scenario, names: Sequence[str], seeds: int, jobs: int | None, out: Path | None, as_json: bool
) -> None:
    """Compare policies over several seeds; into `out` goes replications.json."""
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


def print_json(content: dict[str, Any]) -> None:
    """One JSON object on standard output."""
    print(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False), flush=True)


def show(*parts: RenderableType) -> None:
    """Tables on standard output, as wide as the terminal."""
    from rich.console import Console

    console = Console()
    for part in parts:
        console.print(part)


def say(words: str) -> None:
    """A remark on standard error."""
    print(words, file=sys.stderr)
