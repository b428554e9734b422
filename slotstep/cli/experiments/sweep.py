"""`slotstep sweep` and `slotstep results`: many scenarios at once, and questions to what they gave.

Heavy imports are inside the commands.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slotstep.cli.permission import Yes

if TYPE_CHECKING:
    from slotstep.experiments.sweeps.sweep import Tally

EVERY = 60.0
"""Seconds between two lines of progress where there is no terminal."""

HEADLINES = {
    "occupancy": "occupancy",
    "rates_output_tokens_per_s": "output tok/s",
    "ttft_s_mean": "mean TTFT s",
    "ttft_s_p99": "p99 TTFT s",
    "tpot_s_p99": "p99 TPOT s",
    "attainment": "attainment",
}

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The directory of a sweep.")]


def register(app: typer.Typer) -> None:
    """Add the commands to `slotstep`."""
    for command in (sweep, results):
        app.command()(command)


def sweep(
    grid: Annotated[Path, typer.Argument(metavar="GRID", help="The grid, a YAML file.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where a file for each run goes.")],
    backend: Annotated[str, typer.Option(help="Where to compute: local, dask or ray.")] = "local",
    address: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Of the cluster's scheduler, as in tcp://host:8786.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Runs at once; as many as there are cores if not given.")
    ] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Run again what is there as failed.")] = False,
    yes: Yes = False,
) -> None:
    """Run every point of a grid that is not in DIR yet; each is written as it ends."""
    from slotstep.experiments.sweeps import sweep as sweeps
    from slotstep.experiments.sweeps.grid import load_grid

    with Progress() as progress:
        sweeps.sweep(
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


def results(
    folder: Folder,
    query: Annotated[
        str | None,
        typer.Option(metavar="SQL", help="A question in DuckDB's SQL to the table `runs`."),
    ] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON array of objects.")] = False,
) -> None:
    """Show what a sweep gave: its axes and a few numbers, or the answer to a query."""
    from reports.latency_origin import FROM_SENT
    from slotstep.experiments.sweeps import query as queries
    from slotstep.experiments.sweeps.store import opened
    from traces.errors import BadInput

    if as_csv and as_json:
        raise BadInput("--csv --json: expected one of them")
    store = opened(folder)
    frame = queries.ask(store, query if query is not None else queries.overview(store, HEADLINES))
    if as_csv:
        print(frame.to_csv(index=False), end="", flush=True)
    elif as_json:
        print(queries.as_json(frame), flush=True)
    else:
        queries.show(frame)
        if query is None and queries.held_back(store):
            print(FROM_SENT)
    failed = queries.failures(store)
    if query is None and failed:
        print(
            f"{failed} runs failed; their reasons: --query \"SELECT * FROM runs WHERE status = 'failed'\"",
            file=sys.stderr,
        )


class Progress:
    """How a sweep stands, on standard error: a bar on a terminal, else a line now and then."""

    def __init__(self) -> None:
        from slotstep.cli.progress import Meter

        self.make = Meter
        self.tally: Tally | None = None
        self.began = self.said = time.monotonic()

    def __enter__(self) -> Progress:
        self.meter = self.make("sweep", 0, "runs")
        return self

    def __exit__(self, *_: object) -> None:
        self.meter.__exit__(None, None, None)

    def __call__(self, tally: Tally) -> None:
        self.tally = tally
        self.meter.total = tally.total - tally.before
        self.meter(tally.done)
        now = time.monotonic()
        if not sys.stderr.isatty() and tally.done > 1 and now - self.said >= EVERY:
            self.said = now
            ended = tally.before + tally.done
            left = (now - self.began) / tally.done * (tally.total - ended)
            print(f"{ended} of {tally.total} runs, {tally.failed} failed, about {left:.0f} s left", file=sys.stderr)
