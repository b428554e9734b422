"""`slotstep calibrate from-steps` and `from-log`: step costs from what an engine logged.

Answers go to standard output, all else to standard error, and heavy imports are inside, as in `slotstep.cli`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from calibrate.from_steps import StepFit
    from calibrate.identify import Identified
    from sim.cost import Curve

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
            details=confidence(found.intervals, found.identified),
        )
        keep(made.text(), out)
    if as_json:
        print_json(
            {"cost": coefficients(found.cost), **confidence(found.intervals, found.identified), **found.residuals}
        )
        return
    print(step_lines(found))
    show(coefficient_table(found.cost, found.intervals, found.identified))


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


def confidence(intervals: Mapping[str, tuple[float, float]], identified: Identified) -> dict[str, Any]:
    """Intervals of the coefficients and what the data do not tell, as plain values."""
    return {
        "intervals": {name: [float(f"{bound:.4g}") for bound in bounds] for name, bounds in intervals.items()},
        "not_identified": identified.lines(),
    }


def coefficient_table(cost: Curve, intervals: Mapping[str, tuple[float, float]], identified: Identified) -> Any:
    """Each fitted coefficient with its interval; those that the data do not fix are marked."""
    from rich import box
    from rich.table import Column, Table

    from slotstep.units import text

    right = [Column(name, justify="right", no_wrap=True) for name in ("value", "5%", "95%")]
    table = Table(Column("coefficient", no_wrap=True), *right, "", box=box.SIMPLE)
    loose = {*identified.unseen, *identified.unsure, *(name for group in identified.tied for name in group)}
    for name, (low, high) in intervals.items():
        values = (getattr(cost, name, None), low, high)
        shown = [text(float(f"{value:.4g}")) if value is not None else "" for value in values]
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
