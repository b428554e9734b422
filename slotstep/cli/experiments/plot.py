"""`slotstep plot`: metrics of a sweep over one of its axes, as a figure."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from slotstep.cli.output import say


def plot(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The directory of a sweep.")],
    x: Annotated[
        str | None, typer.Option("--x", metavar="AXIS", help="The axis to draw over; the first one if not given.")
    ] = None,
    y: Annotated[
        list[str] | None,
        typer.Option("--y", metavar="METRIC", help="A metric, as in wait_s.p99: a panel. May be repeated."),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option("--by", metavar="AXIS", help="A line for each value of it; all other axes if not given."),
    ] = None,
    where: Annotated[
        str | None, typer.Option(metavar="SQL", help="Draw the rows that meet this condition alone.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="A .png, .svg or .pdf file; by default plot.png in DIR."),
    ] = None,
) -> None:
    """Draw metrics of a sweep: the mean over seeds with its 95% interval, for each value of the axes."""
    from reports.figures.png import ENDINGS, write_figure
    from reports.figures.sweep import sweep_figure
    from slotstep.experiments.sweeps import curves, earlier
    from slotstep.experiments.sweeps.store import opened
    from traces.errors import BadInput

    target = out or folder / "plot.png"
    if target.suffix not in ENDINGS:
        raise BadInput(f"--out {target}: expected a name that ends in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}")
    store = opened(folder)
    for line in earlier.remarks(store):
        say(line)
    choice = curves.choose(store, x, by or (), y or ())
    print(write_figure(sweep_figure(curves.panels(store, choice, where)), target))
