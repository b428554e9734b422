"""`slotstep sweep`: every point of a grid that has not been run yet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from slotstep.cli.params import BundleFile, Jobs, Kernel, Yes


def sweep(
    grid: Annotated[Path, typer.Argument(metavar="GRID", help="The grid, a YAML file.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where a file for each run goes.")],
    backend: Annotated[str, typer.Option(help="Where to compute: local, dask or ray.")] = "local",
    address: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Of the cluster's scheduler, as in tcp://host:8786.")
    ] = None,
    jobs: Jobs = None,
    retry: Annotated[bool, typer.Option("--retry", help="Run again what is there as failed.")] = False,
    bundle: BundleFile = None,
    yes: Yes = False,
    kernel: Kernel = None,
) -> None:
    """Run every point of a grid that is not in DIR yet; each row is written when its run ends."""
    from slotstep.cli.output import say
    from slotstep.cli.progress import SweepProgress
    from slotstep.experiments.sweeps import earlier
    from slotstep.experiments.sweeps import sweep as sweeps
    from slotstep.experiments.sweeps.grid import load_grid

    with SweepProgress() as progress:
        store = sweeps.sweep(
            load_grid(grid, yes),
            out,
            backend=backend,
            address=address,
            jobs=jobs,
            retry=retry,
            progress=progress,
        )
    tally = progress.tally
    assert tally is not None
    failed = f", {tally.failed} of these failed" if tally.failed else ""
    print(f"{tally.total} runs: {tally.done} now{failed}, {tally.before} before", flush=True)
    for line in earlier.remarks(store):
        say(line)
    if bundle is not None:
        from slotstep.experiments.bundles.bundle import write
        from slotstep.experiments.bundles.swept import runs_of

        say(f"written to {write(bundle, runs_of(store))}")
