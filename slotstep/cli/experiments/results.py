"""`slotstep results`: the table of a sweep, and queries of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from slotstep.cli.output import say

SHOWN = ("occupancy", "rates_output_tokens_per_s", "ttft_s_mean", "ttft_s_p99", "tpot_s_p99", "attainment")
"""Columns that are shown without a query, beside the axes; the heads are names for a query."""


def results(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The directory of a sweep.")],
    query: Annotated[
        str | None,
        typer.Option(metavar="SQL", help="A question in DuckDB's SQL to the tables `runs` and `earlier`."),
    ] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON array of objects.")] = False,
) -> None:
    """Print the table of a sweep: its axes and main metrics, or the answer to a query."""
    from reports.latency_origin import FROM_SENT
    from slotstep.experiments.sweeps import earlier
    from slotstep.experiments.sweeps import query as queries
    from slotstep.experiments.sweeps.store import opened
    from traces.errors import BadInput

    if as_csv and as_json:
        raise BadInput("--csv --json: expected one of them")
    store = opened(folder)
    for line in earlier.remarks(store):
        say(line)
    frame = queries.ask(store, query if query is not None else queries.overview(store, SHOWN))
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
        say(f"{failed} runs failed; their reasons: --query \"SELECT * FROM runs WHERE status = 'failed'\"")
