"""`slotstep calibrate fit`: the profile of a measurement."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from slotstep.cli.output import say
from slotstep.cli.params import ProfileFile

if TYPE_CHECKING:
    from calibrate.fit.fit_run import Fitted


def fit(
    run: Annotated[Path, typer.Argument(help="The folder of a measurement.")],
    out: ProfileFile,
    form: Annotated[Literal["table", "roofline"], typer.Option(help="Of the curve.")] = "table",
    clock: Annotated[
        Literal["device", "cpu", "wall"] | None, typer.Option(help="cpu where it was read, else wall, if not given.")
    ] = None,
    host: Annotated[str, typer.Option(metavar="DURATION", help="Added to every step for the host.")] = "0s",
) -> None:
    """Make a profile of a measurement, and say how far it is from every point and they from the floor."""
    from calibrate.fit.fit_run import fit as fitted
    from calibrate.measure.model import folder_of
    from calibrate.measure.run_log import read_about, read_lines
    from reports.files import write_text
    from slotstep.scenario import units
    from traces.errors import BadInput

    try:
        about, lines = read_about(folder_of(run)), read_lines(run)
        found = fitted(lines, about, form, clock)
        made = found.profile(about, out.stem, datetime.date.today().isoformat(), units.nanoseconds(host))
    except ValueError as error:
        raise BadInput(str(error)) from None
    write_text(out, made.text())
    for line in lines_of(found):
        print(line)
    say(f"written to {out}")


def lines_of(found: Fitted) -> list[str]:
    """The quality of a fit as lines of text."""
    points = found.points
    lines = [f"{len(points)} steps, {int(points['n'].sum())} times, by {found.clock} time"]
    for kind in ("decode", "chunk", "mixed", "uneven", "held_out"):
        if f"{kind}_n" in found.residuals:
            mean, most = found.residuals[f"{kind}_mean"], found.residuals[f"{kind}_max"]
            lines.append(
                f"{kind:<9} {found.residuals[f'{kind}_n']:>3} steps, off by {mean:.1%} on average, {most:.1%} at most"
            )
    known = points["over_floor"].dropna()
    if len(known):
        lines.append(
            f"floor     steps take {known.median():.2f} times the least possible (median), {known.min():.2f} at best"
        )
    lines.append(f"drift     {found.drift.verdict}")
    if found.contention is not None:
        lines.append(f"host      steps took {found.contention:.2f} times as long as their thread worked (median)")
    return lines + [f"skipped   {line}" for line in found.skipped]
