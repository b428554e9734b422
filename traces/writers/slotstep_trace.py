"""slotstep's own trace format: a parquet table with every frame, type and remark of a Trace.

Columns of the workload keep their names; those of other frames are named "FRAME.COLUMN", and the column `frame` names
each row's frame. Everything else is in the schema's metadata under KEY. `traces.formats.slotstep_trace` reads it.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from traces.reading.table import Trace
from traces.writing import write_bytes

VERSION = 1
KEY = "slotstep.trace"
FRAMES = ("workload", "measurements", "tables", "report")
LISTS = {"integers": pa.list_(pa.int64()), "numbers": pa.list_(pa.float64()), "texts": pa.list_(pa.string())}


def write(trace: Trace, path: Path) -> list[str]:
    """Write the whole trace; nothing is lost."""
    frames = {"workload": trace.workload, "measurements": trace.measurements, **trace.tables}
    present = {name: frame for name, frame in frames.items() if frame is not None}
    total = sum(map(len, present.values()))
    columns: dict[str, Any] = {}
    about = []
    before = 0
    for name, frame in present.items():
        kinds = {}
        for column in frame.columns:
            kind, values = stored(frame[column])
            kinds[column] = kind
            key = column if name == "workload" else f"{name}.{column}"
            padding = (pa.nulls(before, values.type), values, pa.nulls(total - before - len(frame), values.type))
            columns[key] = pa.chunked_array([part for part in padding if len(part)], values.type)
        about.append({"name": name, "rows": len(frame), "columns": kinds})
        before += len(frame)
    if len(present) > 1:
        names = [name for name, frame in present.items() for _ in range(len(frame))]
        columns["frame"] = pa.array(names, pa.string()).dictionary_encode()
    metadata = {
        "version": VERSION,
        "frames": about,
        "fields": {field.name: getattr(trace, field.name) for field in fields(trace) if field.name not in FRAMES},
        "report": {
            **vars(trace.report),
            "changed": dict(trace.report.changed),
            "dropped": dict(trace.report.dropped),
        },
    }
    table = pa.table(columns).replace_schema_metadata({KEY: json.dumps(metadata)})
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    write_bytes(path, buffer.getvalue())
    return []


def stored(column: pd.Series[Any]) -> tuple[str, Any]:
    """The storage kind of a column, for `traces.formats.slotstep_trace`, and its arrow array."""
    if column.dtype != object:
        array = pa.array(column, from_pandas=column.dtype.kind != "f")
        return str(column.dtype), array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    values = [None if is_missing(value) else value for value in column]
    kind = kind_of_lists(values)
    if kind == "json":
        return kind, pa.array([None if value is None else json.dumps(bare(value)) for value in values], pa.string())
    return kind, pa.array([None if value is None else list(value) for value in values], LISTS[kind])


def kind_of_lists(values: Sequence[Any]) -> str:
    """ "integers", "texts" (tuples of them) or "numbers" (an array), if every value is such a list, else "json"."""
    given = [value for value in values if value is not None]
    if given and all(isinstance(value, np.ndarray) for value in given):
        return "numbers"
    if given and all(isinstance(value, tuple) for value in given):
        if all(type(item) is int and abs(item) < 2**63 for value in given for item in value):
            return "integers"
        if all(type(item) is str for value in given for item in value):
            return "texts"
    return "json"


def is_missing(value: object) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value))


def bare(value: Any) -> Any:
    """A value for JSON: numpy scalars as Python numbers, tuples and arrays as lists."""
    if isinstance(value, np.generic):
        return value.item()
    return [bare(item) for item in value] if isinstance(value, tuple | list | np.ndarray) else value
