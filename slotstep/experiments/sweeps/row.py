"""One run as one row: its name and status, the main numbers, and summary and settings as JSON.

Column names follow the summary: `ttft_s` has the columns `ttft_s_n`, `ttft_s_mean`, ... Types do not depend on
values, so that the rows of any sweep make one table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sim.accounting.latencies import LATENCIES, PERCENTILES
from sim.accounting.ledger import ROWS
from sim.accounting.requests import STATUSES

if TYPE_CHECKING:
    from slotstep.experiments.sweeps.grid import Kind

STATISTICS = {"n": "int64", **dict.fromkeys(("mean", *(f"p{p}" for p in PERCENTILES), "max"), "double")}
LEDGER = ("bought", *ROWS)

NUMBERS: dict[tuple[str, ...], str] = {
    ("scenario",): "string",
    ("policy",): "string",
    ("predictor",): "string",
    ("seed",): "int64",
    ("log_sha256",): "string",
    ("steps",): "int64",
    ("makespan_s",): "double",
    ("occupancy",): "double",
    ("preemptions",): "int64",
    ("goodput_per_s",): "double",
    ("attainment",): "double",
    ("tokens_per_slot_step",): "double",
    ("queue_grows",): "bool",
    **{("requests", status): "int64" for status in ("injected", *STATUSES)},
    **{("slot_steps", row): "int64" for row in LEDGER},
    **{("slot_seconds", row): "double" for row in (*LEDGER, "idle", "down")},
    ("pages", "total"): "int64",
    ("pages", "mean_used"): "double",
    ("pages", "peak_used"): "int64",
    ("pages", "mean_live_fraction"): "double",
    **{
        ("tokens", kind): "int64"
        for kind in ("prompt", "output", "computed", "recomputed", "cached", "padding", "lost")
    },
    ("cache", "hit_rate"): "double",
    ("rates", "offered_per_s"): "double",
    ("rates", "offered_by_gaps_per_s"): "double",
    ("rates", "finished_per_s"): "double",
    ("rates", "finished_by_gaps_per_s"): "double",
    ("rates", "output_tokens_per_s"): "double",
    ("concurrency", "in_flight_peak"): "int64",
    ("concurrency", "in_flight_mean"): "double",
    ("concurrency", "running_peak"): "int64",
    ("concurrency", "running_mean"): "double",
    **{
        (latency, statistic): kind
        for latency in (*LATENCIES, "max_itl_s", "client_wait_s")
        for statistic, kind in STATISTICS.items()
    },
}
"""The path of each column's number in the summary, and its type."""

OWN = {"run": "string", "status": "string", "error": "string"}
WHOLE = {"summary": "string", "settings": "string"}

Row = dict[str, Any]


def schema(axes: Mapping[str, Kind]) -> pa.Schema:
    """The columns of a sweep over these axes."""
    numbers = {"_".join(path): kind for path, kind in NUMBERS.items()}
    columns = OWN | dict(axes) | {name: kind for name, kind in numbers.items() if name not in axes} | WHOLE
    return pa.schema([(name, pa.type_for_alias(kind)) for name, kind in columns.items()])


def ended(run: str, axes: Mapping[str, Any], settings: Mapping[str, Any], summary: Mapping[str, Any]) -> Row:
    """The row of a run that succeeded."""
    numbers = {"_".join(path): found(summary, path) for path in NUMBERS}
    return {
        "run": run,
        "status": "ended",
        "error": None,
        **numbers,
        **axes,
        "summary": text(summary),
        "settings": text(settings),
    }


def failed(run: str, axes: Mapping[str, Any], settings: Mapping[str, Any] | None, error: str) -> Row:
    """The row of a run that failed."""
    return {
        "run": run,
        "status": "failed",
        "error": error,
        **axes,
        "settings": None if settings is None else text(settings),
    }


def found(summary: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    """The value at a path of the summary, None if missing."""
    here: Any = summary
    for part in path:
        here = here.get(part) if here is not None else None
    return here


def text(content: Mapping[str, Any]) -> str:
    """A mapping as JSON text."""
    return json.dumps(content, ensure_ascii=False, allow_nan=False)


def table(rows: list[Row], axes: Mapping[str, Kind]) -> pa.Table:
    """Rows as a table of these columns."""
    columns = schema(axes)
    return pa.Table.from_pylist([{name: row.get(name) for name in columns.names} for row in rows], columns)
