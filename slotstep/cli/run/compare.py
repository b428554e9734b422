"""`slotstep compare`: several policies, or engines, on the same requests, on one seed or on several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slotstep.cli.output import open_scenario, print_json, say, show
from slotstep.cli.params import (
    AsJson,
    BundleFile,
    Kernel,
    OutFolder,
    RequestsFile,
    ScenarioFile,
    Settings,
    Yes,
    permitted,
)
from slotstep.cli.run.simulating import bundle_runs, simulate

if TYPE_CHECKING:
    from slotstep.scenario.schema import Scenario


def compare(
    scenario: ScenarioFile,
    policies: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME,...",
            help="The policies; the scenario's own keeps its options, the others take their defaults.",
        ),
    ] = None,
    engines: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME,...",
            help="Engines instead of policies: presets, each with its defaults on as much memory.",
        ),
    ] = None,
    profiles: Annotated[
        str | None,
        typer.Option(metavar="ENGINE=PROFILE,...", help="With --engines: profiles that price the steps of some."),
    ] = None,
    settings: Settings = None,
    trace: RequestsFile = None,
    out: OutFolder = None,
    bundle: BundleFile = None,
    as_json: AsJson = False,
    seeds: Annotated[
        int | None,
        typer.Option(min=2, help="Repeat on this many seeds: intervals, and significant differences."),
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Seeds at once; as many as there are cores.")] = None,
    yes: Yes = False,
    kernel: Kernel = None,
) -> None:
    """Simulate several policies, or several engines, on the same requests and compare them."""
    from slotstep.runs.resolution import with_policy
    from slotstep.runs.result import save_all

    if (policies is None) == (engines is None):
        raise typer.BadParameter("expected one of --policies and --engines")
    if bundle is not None and (engines is not None or seeds is not None):
        raise typer.BadParameter("holds runs of policies on one seed; a sweep has several", param_hint="--bundle")
    loaded = open_scenario(scenario, permitted(settings, yes), trace)
    if engines is not None:
        if seeds is not None or jobs is not None:
            raise typer.BadParameter("compares policies; expected no --engines", param_hint="--seeds")
        compare_engines(loaded, listed_names("--engines", engines), profiles, out, as_json)
        return
    if profiles is not None:
        raise typer.BadParameter("needs --engines", param_hint="--profiles")
    assert policies is not None
    names = listed_names("--policies", policies)
    if seeds is not None:
        replicate(loaded, names, seeds, jobs, out, as_json)
        return
    if jobs is not None:
        raise typer.BadParameter("needs --seeds", param_hint="--jobs")
    scenarios = [with_policy(loaded, name) for name in names]
    folders = [*([out / name for name in names] if out else []), *([bundle.parent] if bundle else [])]
    results = simulate(scenarios, folders)
    if out:
        save_all(results, out)
        say(f"written to {out}")
    if bundle:
        bundle_runs(bundle, results)
    summaries = [result.summary for result in results]
    if as_json:
        print_json({"runs": summaries})
    else:
        from reports.text.comparison import comparison_table

        show(comparison_table(summaries))


def compare_engines(
    scenario: Scenario, names: Sequence[str], profiles: str | None, out: Path | None, as_json: bool
) -> None:
    """Compare engines by their presets; writes a folder for each into `out`."""
    from sim.log.step_kinds import time_by_kind
    from slotstep.experiments.engines import on_engine
    from slotstep.runs.result import save_all

    prices = profiles_of(profiles, names)
    scenarios = [on_engine(scenario, name, prices.get(name)) for name in names]
    results = simulate(scenarios, [out / name for name in names] if out else [])
    if out:
        save_all(results, out)
        say(f"written to {out}")
    summaries = [result.summary for result in results]
    times = [time_by_kind(list(result.logs)) for result in results]
    if as_json:
        print_json({"runs": summaries, "step_seconds": [in_seconds(each) for each in times]})
        return
    from reports.text.comparison import comparison_table
    from reports.text.engine_decisions import decisions_table

    show(comparison_table(summaries))
    show(decisions_table(names, summaries, times))


def in_seconds(times: Mapping[str, int]) -> dict[str, float]:
    """Times in seconds."""
    return {kind: spent / 1e9 for kind, spent in times.items()}


def profiles_of(given: str | None, engines: Sequence[str]) -> dict[str, str]:
    """The profile of each engine that has one. Raises BadInput for a part without `=`, or of another engine."""
    from traces.errors import BadInput

    found = {}
    for part in (given or "").split(",") if given else []:
        engine, equals, profile = (each.strip() for each in part.partition("="))
        if not equals or not profile or engine not in engines:
            raise BadInput(
                f"--profiles {given}: found {part!r}; expected ENGINE=PROFILE with one of {', '.join(engines)}"
            )
        found[engine] = profile
    return found


def listed_names(option: str, listed: str) -> list[str]:
    """The names of a comma-separated list. Raises BadInput for an empty or a repeated name."""
    from traces.errors import BadInput

    what, example = ("policy", "fcfs,sjf,fair") if option == "--policies" else ("engine", "vllm,sglang")
    names = [name.strip() for name in listed.split(",")]
    if not all(names):
        raise BadInput(f"{option} {listed}: expected names separated by commas, such as {example}")
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated:
        raise BadInput(f"{option} {listed}: {repeated} is there twice; expected each {what} once")
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
