"""`slotstep replay`: a scenario served by a real engine, on the wall clock.

Answers go to standard output, all else to standard error, and heavy imports are inside, as in `slotstep.cli.app`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from slotstep.cli.permission import Yes, permitted

if TYPE_CHECKING:
    from rich.table import Table

ScenarioFile = Annotated[Path, typer.Argument(help="The scenario, a YAML file.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key, as in engine.slots=8. May be repeated."),
]
Model = Annotated[
    str,
    typer.Option(metavar="NAME", help="A named model (tiny, llama-3.1-8b, ...), a config.json, or synthetic."),
]
DeviceName = Annotated[
    Literal["auto", "cpu", "cuda"], typer.Option(help="Where it runs; auto: a GPU if there is one.")
]
DTypeName = Annotated[
    Literal["float32", "bfloat16", "float16"] | None,
    typer.Option(help="Of weights and cache; the model's own, if not given, and float32 on a CPU."),
]
Attention = Annotated[Literal["auto", "torch", "triton", "flashinfer"], typer.Option(help="The attention backend.")]
Fraction = Annotated[float, typer.Option(help="Most of the device's memory that is used.")]
Weights = Annotated[
    Path | None, typer.Option(metavar="DIR", help="A folder with safetensors; random weights if not given.")
]
Folder = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="Write what `slotstep run` writes, and replay.json.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]


def options(
    device: str, dtype: str | None, attention: str, memory_fraction: float, weights: Path | None
) -> dict[str, Any]:
    """What the command line says of an engine, by the names of `EngineOptions`."""
    return {
        "device": device,
        "dtype": dtype,
        "attention": attention,
        "memory_fraction": memory_fraction,
        "weights": weights,
    }


def replay(
    scenario: ScenarioFile,
    model: Model,
    settings: Settings = None,
    policy: Annotated[
        str | None, typer.Option(metavar="NAME", help="Run under this policy instead of the scenario's.")
    ] = None,
    clock: Annotated[
        Literal["wall", "cpu"],
        typer.Option(help="cpu: by the CPU time of the computing thread, and without waiting for arrivals."),
    ] = "wall",
    device: DeviceName = "auto",
    dtype: DTypeName = None,
    attention: Attention = "auto",
    memory_fraction: Fraction = 0.9,
    weights: Weights = None,
    out: Folder = None,
    as_json: AsJson = False,
    yes: Yes = False,
) -> None:
    """Serve a scenario with a real engine and say where its slots, pages and time went."""
    from slotstep.cli import app
    from slotstep.cli.progress import Meter
    from slotstep.runs import engine_replay
    from slotstep.runs.result import prepare
    from slotstep.runs.workload import load

    loaded = app.open_scenario(scenario, permitted(settings, yes), None)
    loaded = loaded if policy is None else loaded.with_policy(policy)
    made = load(loaded)
    if out is not None:
        prepare(out)
    chosen = options(device, dtype, attention, memory_fraction, weights)
    with engine_replay.opened(loaded, model, made.requests, **chosen) as there:
        with Meter(f"replay on {there.about['device']}", len(made.requests)) as meter:
            result, replayed = engine_replay.run(loaded, there, made, pacing=clock, progress=meter)
        about = {"clock": "its own" if there.clock else clock, **there.about}
    told = about | replayed.timing.summary() | {"contention": replayed.contention}
    if out is not None:
        from reports import files

        files.write_json(out / "replay.json", told)
        result.save(out)
        print(f"written to {out}", file=sys.stderr)
    if as_json:
        app.print_json(result.summary | {"replay": told})
        return
    from reports.text import table

    app.show(table.summary_table(result.summary), table.ledger_bar(result.summary), pace_table(told))


def pace_table(told: dict[str, Any]) -> Table:
    """What the host did with its time, as a table."""
    from rich import box
    from rich.table import Column, Table

    columns = [Column(name, justify="right", no_wrap=True) for name in ("p50", "p99", "max")]
    table = Table(
        Column("host", no_wrap=True), *columns, box=box.SIMPLE, title=f"{told['model']['name']} on {told['device']}"
    )
    names = {
        "scheduling_and_bookkeeping_s": "scheduling and bookkeeping, a step",
        "launching_s": "launching, a step",
        "lateness_s": "arrivals heard of late",
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
