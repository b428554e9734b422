"""slotstep's own parquet format, written by `traces.writers.slotstep_trace`: a Trace with its report, unchanged."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from traces.errors import BadInput
from traces.reading.head import Head
from traces.reading.pieces import STRING, objects
from traces.reading.report import Report
from traces.reading.table import Trace
from traces.writers.slotstep_trace import KEY, VERSION

MAPPER = {pa.int64(): pd.Int64Dtype(), pa.string(): STRING, pa.large_string(): STRING}


def matches(head: Head) -> bool:
    """Whether it is a parquet file with slotstep's metadata."""
    return KEY in head.metadata_keys


def load(path: Path) -> Trace:
    """The trace in the file. Raises BadInput for another format or version, and for a damaged file."""
    try:
        about = json.loads((pq.read_schema(path).metadata or {})[KEY.encode()])
    except (pa.ArrowException, OSError, KeyError, ValueError):
        raise BadInput(f"{path}: not a parquet file in slotstep's format") from None
    if about.get("version") != VERSION:
        raise BadInput(f"{path}: version {about.get('version')} of slotstep's own format; expected {VERSION}")
    try:
        table = pq.read_table(path)
        frames, before = {}, 0
        for part in about["frames"]:
            prefix = "" if part["name"] == "workload" else f"{part['name']}."
            rows = table.slice(before, part["rows"])
            frames[part["name"]] = pd.DataFrame(
                {name: restored(rows[f"{prefix}{name}"], kind) for name, kind in part["columns"].items()},
                index=range(part["rows"]),
            )
            before += part["rows"]
        report = Report(**about["report"])
        trace = Trace(report=report, **about["fields"])
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        raise BadInput(f"{path}: damaged: {' '.join(str(error).split())}") from None
    report.file, report.changed, report.dropped = str(path), Counter(report.changed), Counter(report.dropped)
    workload, measurements = frames.pop("workload", None), frames.pop("measurements", None)
    return replace(trace, workload=workload, measurements=measurements, tables=frames)


def restored(column: Any, kind: str) -> Any:
    """A column in its original type."""
    array = column.combine_chunks()
    if kind == "json":
        return objects(None if text is None else tuples(json.loads(text)) for text in array.to_pylist())
    if kind in ("integers", "texts"):
        return objects(None if value is None else tuple(value) for value in array.to_pylist())
    if kind == "numbers":
        return objects(None if value is None else np.asarray(value, np.float64) for value in array.to_pylist())
    if kind in ("Int64", "string"):
        return array.to_pandas(types_mapper=MAPPER.get).array
    return array.to_pandas().astype(kind).array


def tuples(value: Any) -> Any:
    return tuple(tuples(item) for item in value) if isinstance(value, list) else value
