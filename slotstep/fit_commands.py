"""`slotstep calibrate from-steps` and `from-log`: step costs from what an engine logged.

Answers go to standard output, all else to standard error, and heavy imports are inside, as in `slotstep.cli`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import pandas as pd

    from calibrate.from_log import LogFit
    from calibrate.from_steps import StepFit
    from calibrate.identify import Identified
    from sim.cost import Curve, Roofline
    from slotstep.measured import Run

Out = Annotated[Path | None, typer.Option("--out", metavar="FILE.yaml", help="Write the profile here.")]
About = Annotated[
    list[str] | None,
    typer.Option("--about", metavar="KEY=VALUE", help="What the profile is of, as in device=H100. May be repeated."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
HoldOut = Annotated[float, typer.Option("--hold-out", help="Share of the steps, the last, to predict unseen.")]
Clock = Annotated[
    str | None, typer.Option("--clock", metavar="NAME", help="cpu or wall; cpu where the log has it, if not given.")
]


def register(app: typer.Typer) -> None:
    """Add the commands to the group `slotstep calibrate`."""
    app.command()(from_steps)
    app.command()(from_log)


def from_steps(
    steps: Annotated[Path, typer.Argument(help="The log of steps: CSV, parquet or JSON lines.")],
    out: Out = None,
    about: About = None,
    clock: Clock = None,
    hold_out: HoldOut = 0.25,
    as_json: AsJson = False,
) -> None:
    """Fit a roofline to a log of steps, by relative non-negative least squares."""
    from calibrate.from_steps import fit
    from slotstep import provenance
    from traces import steps as step_logs
    from traces.errors import BadInput

    of = provenance.said(about or (), out)
    if clock not in (None, "cpu", "wall"):
        raise BadInput(f"--clock {clock}: expected cpu or wall")
    read = step_logs.read(steps, clock)  # type: ignore[arg-type]  # it is one of the two
    try:
        found = fit(read, hold_out)
    except ValueError as error:
        raise BadInput(f"{steps}: {error}") from None
    if out is not None:
        residuals = {
            f"{part}_{key}": value for part, of_part in found.residuals.items() for key, value in of_part.items()
        }
        made = provenance.profile(
            "roofline",
            found.cost,
            of,
            out.stem,
            method=f"relative non-negative least squares on {len(found.errors):,} steps of an engine's own log",
            source=f"a log of {len(read):,} steps",
            residuals={key: abs(value) for key, value in residuals.items()},
            range=visited(read),
            not_included=["what happens between steps and outside the engine"],
            details=confidence(found.intervals, found.identified.lines()),
        )
        keep(made.text(), out)
    if as_json:
        print_json(
            {
                "cost": coefficients(found.cost),
                **confidence(found.intervals, found.identified.lines()),
                **found.residuals,
            }
        )
        return
    print(step_lines(found))
    show(coefficient_table(found.cost, found.intervals, found.identified))


def from_log(
    measurements: Annotated[list[Path], typer.Argument(help="Measured runs, in any format that has measurements.")],
    scenario: Annotated[
        Path, typer.Option("--scenario", metavar="FILE", help="The engine they ran on, and its clients.")
    ],
    out: Out = None,
    about: About = None,
    hold_out: Annotated[
        list[str] | None, typer.Option("--hold-out", metavar="RUN", help="A run to predict unseen. May be repeated.")
    ] = None,
    free: Annotated[
        str | None,
        typer.Option(metavar="TERM,...", help="Fit these terms only; the others are those of the scenario's cost."),
    ] = None,
    first: Annotated[
        int, typer.Option(min=20, help="Most requests of each run to fit; the rest is predicted.")
    ] = 2000,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the scenario.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the starts and of the bootstrap.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Fit a roofline to measured requests: the coefficients whose simulation has their latencies."""
    from slotstep import measured, provenance

    of = provenance.said(about or (), out)
    runs = measured.runs(measurements, scenario, settings or ())
    found = fitted(runs, hold_out or (), free.split(",") if free else (), first, seed)
    if out is not None:
        keep(log_profile(found, runs, of, out.stem), out)
    if as_json:
        told = {
            "cost": coefficients(found.cost),
            "delay": found.delay,
            "free": list(found.free),
            "cpu_s": found.cpu_s,
        }
        spread = confidence(found.intervals, found.lines())
        print_json(told | spread | {"errors": json.loads(found.errors.to_json(orient="records"))})
        return
    print(f"fitted in {found.cpu_s:.0f} s of CPU time; predicted over measured:")
    show(error_table(found.errors), coefficient_table(found.cost, found.intervals, found.identified, found.delay))
    for line in found.lines():
        print(line)


def fitted(runs: Sequence[Run], kept_back: Sequence[str], free: Sequence[str], first: int, seed: int) -> LogFit:
    """The fit to all runs but those kept back. Raises BadInput for a run or term that there is not."""
    from calibrate.from_log import fit
    from sim.cost import Roofline
    from slotstep import engine
    from traces.errors import BadInput, nearest

    names = [run.name for run in runs]
    for name in kept_back:
        if name not in names:
            raise BadInput(f"--hold-out {name}: no such run; did you mean {nearest(name, names)}?")
    used, others = ([run for run in runs if (run.name in kept_back) is back] for back in (False, True))
    if not used:
        raise BadInput("--hold-out: every run is kept back; expected at least one to fit")
    start: Roofline | None = None
    if free:
        given = engine.cost(used[0].scenario)
        if not isinstance(given, Roofline):
            raise BadInput("--free: the scenario's cost is no roofline; expected one whose other terms are kept")
        start = given
    try:
        return fit(
            [run.cell() for run in used],
            [run.cell() for run in others],
            start,
            used[0].delay,
            free,
            first,
            seed=seed,
            progress=lambda words: print(words, file=sys.stderr, flush=True),
        )
    except ValueError as error:
        raise BadInput(str(error)) from None


def log_profile(found: LogFit, runs: Sequence[Run], of: Mapping[str, Any], name: str) -> str:
    """The text of the profile of a fit to runs."""
    from slotstep import provenance

    label = found.errors["part"].str.replace(" ", "_") + "_" + found.errors["metric"].str.removesuffix("_s")
    residuals = found.errors["error"].abs().groupby(label, sort=False).mean().to_dict()
    used = [run.name for run in runs if run.name in set(found.errors.loc[found.errors["part"] == "fitted", "cell"])]
    made = provenance.profile(
        "roofline",
        found.cost,
        of,
        name,
        method="fitted to measured requests with the simulator inside the fit; the residuals are the mean size of "
        "the relative errors of mean, median, 90th and 99th percentile",
        source=f"measured runs {', '.join(used)}",
        residuals=residuals,
        range=None,
        not_included=["the way between client and engine, which the scenario gives as clients.delay"],
        details={"client_delay_ns": found.delay, **confidence(found.intervals, found.lines())},
    )
    return made.text()


def error_table(errors: pd.DataFrame) -> Any:
    """Predicted over measured latencies less 1, a row per run and part."""
    from rich import box
    from rich.table import Column, Table

    columns = [("ttft_s", "p50"), ("ttft_s", "p99"), ("tpot_s", "p50"), ("e2e_s", "p50"), ("e2e_s", "p99")]
    heads = [f"{metric.removesuffix('_s').upper()} {statistic}" for metric, statistic in columns]
    right = [Column(name, justify="right", no_wrap=True) for name in ("n", *heads)]
    table = Table(Column("run", overflow="fold"), Column("part", no_wrap=True), *right, box=box.SIMPLE)
    for (run, part), rows in errors.groupby(["cell", "part"], sort=False):
        known = rows.set_index(["metric", "statistic"])["error"]
        cells = [f"{known[column]:+.1%}" if column in known.index else "" for column in columns]
        table.add_row(str(run), str(part), f"{rows['n'].max():,}", *cells)
    return table


def visited(steps: Any) -> dict[str, float]:
    """The largest values among the steps, as a profile states its range."""
    tokens = steps["decodes"] + steps["chunk_tokens"]
    return {
        "sequences": int((steps["decodes"] + steps["chunks"]).max()),
        "context": int(steps["context"].max()),
        "tokens": int(tokens.max()),
    }


def step_lines(found: StepFit) -> str:
    """How good a fit to steps is, in words."""
    lines = []
    for name, of in found.residuals.items():
        if of["n"]:
            lines.append(
                f"{name.replace('_', ' ')}: {of['n']:,} steps, each {of['mean_abs']:.1%} off on average, "
                f"one in ten by {of['p90_abs']:.1%} or more, median {of['median']:+.1%}"
            )
    return "\n".join(lines + found.identified.lines())


def coefficients(cost: Curve) -> dict[str, float]:
    """A curve's coefficients that are not 0, ns."""
    from slotstep.provenance import coefficients as rounded

    return rounded(cost)


def confidence(intervals: Mapping[str, tuple[float, float]], said: Sequence[str]) -> dict[str, Any]:
    """Intervals of the coefficients and what the data do not tell, as plain values."""
    return {
        "intervals": {name: [float(f"{bound:.4g}") for bound in bounds] for name, bounds in intervals.items()},
        "not_identified": list(said),
    }


def coefficient_table(
    cost: Curve, intervals: Mapping[str, tuple[float, float]], identified: Identified, delay: float = 0.0
) -> Any:
    """Each fitted coefficient with its interval, `delay` beside them; those that the data do not fix are marked."""
    from rich import box
    from rich.table import Column, Table

    from slotstep.units import text

    right = [Column(name, justify="right", no_wrap=True) for name in ("value", "5%", "95%")]
    table = Table(Column("coefficient", no_wrap=True), *right, "", box=box.SIMPLE)
    loose = {*identified.unseen, *identified.unsure, *(name for group in identified.tied for name in group)}
    for name, (low, high) in intervals.items():
        shown = [text(float(f"{value:.4g}")) for value in (getattr(cost, name, delay), low, high)]
        table.add_row(name, *shown, "not identified" if name in loose else "")
    return table


def keep(content: str, out: Path) -> None:
    """Write a file, whole or not at all, and say so."""
    from reports.files import write_text

    write_text(out, content)
    print(f"written to {out}", file=sys.stderr)


def print_json(content: Mapping[str, Any]) -> None:
    """One JSON object on standard output."""
    print(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False), flush=True)


def show(*tables: Any) -> None:
    """Tables on standard output."""
    from rich.console import Console

    console = Console()
    for table in tables:
        console.print(table)
