"""`slotstep study NAME`: sweeps and a figure that answer a common question."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from slotstep.cli.output import say
from slotstep.cli.params import Jobs, Kernel


def study(
    name: Annotated[str, typer.Argument(help="tail, chunk, fairness, prediction, pages or load.")],
    figure: Annotated[
        Path | None, typer.Option("--figure", metavar="FILE", help="The picture; study-NAME.png if not given.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Keep the tables here, and go on with what is there.")
    ] = None,
    jobs: Jobs = None,
    kernel: Kernel = None,
) -> None:
    """Run a study: its sweeps, its findings, and a figure."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from reports import files
    from reports.figures.png import DOTS_PER_INCH
    from slotstep.cli.progress import SweepProgress
    from slotstep.experiments import studies
    from slotstep.experiments.sweeps import grid
    from slotstep.experiments.sweeps.sweep import sweep
    from traces.errors import BadInput, nearest

    if name not in studies.STUDIES:
        raise BadInput(f"study {name}: unknown; did you mean {nearest(name, studies.STUDIES)}?")
    chosen = studies.STUDIES[name]
    target = figure or Path(f"study-{name}.png")
    with contextlib.ExitStack() as stack:
        folder = out or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        frames = []
        for each in chosen.grids:
            with SweepProgress() as progress:
                store = sweep(grid.load_grid(studies.path(each)), folder / each, jobs=jobs, progress=progress)
            frames.append(store.frame())
    print(*chosen.lines(frames), sep="\n", flush=True)
    drawn = chosen.draw(frames)
    FigureCanvasAgg(drawn)
    with files.atomically(target) as temporary:
        drawn.savefig(temporary, dpi=DOTS_PER_INCH)
    say(f"written to {target}")
