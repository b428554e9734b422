"""One run as one row: its name and status, the main numbers, and summary and settings as JSON.

Columns follow the declarations of the metrics: `ttft_s` has the columns `ttft_s_n`, `ttft_s_mean`, ... Types do not
depend on values, so that the rows of any sweep make one table.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sim.accounting.metrics import chosen

if TYPE_CHECKING:
    from slotstep.experiments.sweeps.grid import Kind

OF_THE_RUN = {"scenario": "string", "policy": "string", "predictor": "string", "seed": "int64"}
OF_THE_QUEUE = {"queue_grows": "bool"}
"""Keys of a summary that are not metrics of the log, and their types."""


def numbers(more: Iterable[str] = ()) -> dict[tuple[str, ...], str]:
    """The path in the summary and the type of each number; `more` names metrics beside the built-in ones."""
    declared = [column for metric in chosen(more) for column in metric.columns]
    single = {path: str(value.type) for path, value in declared if len(path) == 1}
    parts = {path: str(value.type) for path, value in declared if len(path) > 1}
    first, after = ({(key,): kind for key, kind in keys.items()} for keys in (OF_THE_RUN, OF_THE_QUEUE))
    return first | single | after | parts


OWN = {"run": "string", "status": "string", "error": "string"}
SOURCES = {"code": "string", "user_code": "string", "input_files": "string"}
"""What the run depended on beside its settings (`identity.sources`)."""
WHOLE = {"summary": "string", "settings": "string"}

Row = dict[str, Any]


def schema(axes: Mapping[str, Kind], more: Iterable[str] = ()) -> pa.Schema:
    """The columns of a row of a sweep over these axes."""
    found = {"_".join(path): kind for path, kind in numbers(more).items()}
    columns = OWN | dict(axes) | {name: kind for name, kind in found.items() if name not in axes} | SOURCES | WHOLE
    return pa.schema([(name, pa.type_for_alias(kind)) for name, kind in columns.items()])


def ended(run: str, axes: Mapping[str, Any], settings: Mapping[str, Any], summary: Mapping[str, Any]) -> Row:
    """The row of a run that succeeded."""
    measured = {"_".join(path): found(summary, path) for path in numbers(summary.get("metrics", ()))}
    return {
        "run": run,
        "status": "ended",
        "error": None,
        **measured,
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


def table(rows: list[Row], axes: Mapping[str, Kind], more: Iterable[str] = ()) -> pa.Table:
    """Rows as a table of the columns of these axes and metrics."""
    columns = schema(axes, more)
    return pa.Table.from_pylist([{name: row.get(name) for name in columns.names} for row in rows], columns)
