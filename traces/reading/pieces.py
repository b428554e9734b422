"""The pieces that a reader yields in the file's order, and helpers to build their columns.

The frames of a piece have times on the file's own clocks and, in `row`, the request's number in the file; requests
without ids get that number as id in `traces.reading.assembly`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from traces.reading.columns.json_rows import encodable
from traces.reading.columns.rows import Rows
from traces.reading.report import Report
from traces.reading.table import Kind, Trace

STRING = pd.StringDtype("pyarrow")
Mask = NDArray[np.bool_]


@dataclass
class Piece:
    """The content of some successive rows; see `traces.reading.table` for the frames' columns.

    `header` is the number of rows before the first request in the file.
    """

    report: Report
    header: int = 0
    workload: pd.DataFrame | None = None
    measurements: pd.DataFrame | None = None
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    block_size: int = 0
    local_blocks: bool = False


def text(values: Any) -> Any:
    """Texts (a pyarrow array, or a list with None) as a nullable string column; "" is missing."""
    if not isinstance(values, pa.Array | pa.ChunkedArray):
        values = pa.array([None if value is None else encodable(value) for value in values], pa.string())
    array = values
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    array = pc.if_else(pc.equal(array, ""), pa.scalar(None, pa.string()), array)
    return array.to_pandas(types_mapper={pa.string(): STRING}.get).array


def nullable(values: Any, absent: Any) -> pd.api.extensions.ExtensionArray:
    """Whole numbers as a nullable Int64 column, missing where `absent`."""
    return pd.arrays.IntegerArray(np.asarray(values, np.int64).copy(), np.asarray(absent, bool).copy())


def objects(values: Iterable[Any]) -> NDArray[np.object_]:
    """An object array of Python values, also where all are lists of one length."""
    found = list(values)
    column = np.empty(len(found), object)
    for place, value in enumerate(found):
        column[place] = value
    return column


def per_token(ttft: Any, e2e: Any, output: Any) -> NDArray[np.float64]:
    """TPOT, (e2e - ttft) / (output - 1), in the unit of the arguments; NaN for fewer than two tokens."""
    later = np.asarray(output, np.float64) - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(later > 0, (np.asarray(e2e) - np.asarray(ttft)) / later, np.nan)


def replayable(
    rows: Rows, report: Report, prompt: Any, output: Any, names: tuple[str, str], also: Any = True
) -> Mask:
    """Which rows become rows of the workload: those with both lengths. Others are counted as dropped, by reason."""
    kept = np.broadcast_to(np.asarray(also, bool), (len(rows),)).copy()
    none, empty = (prompt == 0) & (output == 0) & kept, (prompt == 0) & (output > 0) & kept
    report.drop(f"{names[0]} and {names[1]} are 0", int(none.sum()))
    report.drop(f"{names[0]} is 0", int(empty.sum()))
    report.drop(f"{names[1]} is 0", int(((output == 0) & (prompt > 0) & kept).sum()))
    return np.asarray(kept & (prompt > 0) & (output > 0), bool)


def columns(rows: Rows, kept: Mask | None = None, **values: Any) -> pd.DataFrame:
    """A frame of the kept rows: `row` and the columns given; a column that is None is left out."""
    frame = pd.DataFrame(
        {"row": rows.ordinals(), **{name: value for name, value in values.items() if value is not None}}, copy=False
    )
    return frame if kept is None or kept.all() else frame[kept].reset_index(drop=True)


def kind_of(trace: Trace | Piece) -> Kind:
    """The kind of a trace, by the columns of its frames."""
    names = () if trace.workload is None else tuple(trace.workload.columns)
    if {"arrival_ns", "prompt", "output"} <= set(names):
        return "workload"
    if {"prompt", "output"} <= set(names) or "histograms" in trace.tables:
        return "lengths"
    return "rates" if "rates" in trace.tables else "measurements"
