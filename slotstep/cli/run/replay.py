"""`slotstep replay`: a scenario served by a real engine, on the wall clock."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from slotstep.cli.output import open_scenario, print_json, say, show
from slotstep.cli.params import (
    AsJson,
    Attention,
    Device,
    EngineDType,
    EngineModel,
    MemoryFraction,
    PolicyName,
    ScenarioFile,
    Settings,
    Weights,
    Yes,
    engine_options,
    permitted,
)

if TYPE_CHECKING:
    from rich.table import Table


def replay(
    scenario: ScenarioFile,
    model: EngineModel,
    settings: Settings = None,
    policy: PolicyName = None,
    clock: Annotated[
        Literal["wall", "cpu"],
        typer.Option(help="cpu: by the CPU time of the computing thread, and without waiting for arrivals."),
    ] = "wall",
    device: Device = "auto",
    dtype: EngineDType = None,
    attention: Attention = "auto",
    memory_fraction: MemoryFraction = 0.9,
    weights: Weights = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write what `slotstep run` writes, and replay.json.")
    ] = None,
    as_json: AsJson = False,
    yes: Yes = False,
) -> None:
    """Serve a scenario with a real engine and say where its slots, pages and time went."""
    from slotstep.cli.progress import Meter
    from slotstep.runs import engine_replay
    from slotstep.runs.result import prepare
    from slotstep.runs.workload import load

    loaded = open_scenario(scenario, permitted(settings, yes), policy=policy)
    made = load(loaded)
    if out is not None:
        prepare(out)
    chosen = engine_options(device, dtype, attention, memory_fraction, weights)
    with engine_replay.opened(loaded, model, made.requests, **chosen) as there:
        with Meter(f"replay on {there.about['device']}", len(made.requests)) as meter:
            result, replayed = engine_replay.run(loaded, there, made, pacing=clock, progress=meter)
        about = {"clock": "its own" if there.clock else clock, **there.about}
    told = about | replayed.timing.summary() | {"contention": replayed.contention}
    if out is not None:
        from reports import files

        files.write_json(out / "replay.json", told)
        result.save(out)
        say(f"written to {out}")
    if as_json:
        print_json(result.summary | {"replay": told})
        return
    from reports.text.ledger_bar import ledger_bar
    from reports.text.run_summary import summary_table

    show(summary_table(result.summary), ledger_bar(result.summary), host_table(told))


def host_table(told: dict[str, Any]) -> Table:
    """A table of the host's times: scheduling, launching, lateness."""
    from rich import box
    from rich.table import Column, Table

    columns = [Column(name, justify="right", no_wrap=True) for name in ("p50", "p99", "max")]
    table = Table(
        Column("host", no_wrap=True), *columns, box=box.SIMPLE, title=f"{told['model']['name']} on {told['device']}"
    )
    names = {
        "scheduling_and_bookkeeping_s": "scheduling and bookkeeping, a step",
        "launching_s": "launching, a step",
        "lateness_s": "arrivals submitted late",
        "oversleep_s": "waits that ended late",
    }
    for key, name in names.items():
        spread = told[key]
        if spread["n"]:
            table.add_row(name, *(f"{1e3 * spread[part]:.3f} ms" for part in ("p50", "p99", "max")))
    trend = told["lateness_per_request_s"]
    if trend is not None:
        table.add_row("lateness, from each request to the next", f"{1e3 * trend:+.4f} ms", "", "")
    return table
