"""Shared by the writers of public formats: the workload of one run, and what is lost."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from traces.errors import BadInput
from traces.reading.table import Trace

NEEDED = {"arrival_ns": "arrivals", "prompt": "prompt lengths", "output": "output lengths"}


def workload(trace: Trace, name: str) -> pd.DataFrame:
    """The workload to write as format `name`. Raises BadInput if columns are missing or there are several runs."""
    frame = trace.workload
    missing = [words for column, words in NEEDED.items() if frame is None or column not in frame]
    if frame is None or missing:
        raise BadInput(f"{trace.report.file}: has no {', '.join(missing)}; the {name} format needs them")
    if len(trace.runs) > 1:
        raise BadInput(
            f"{trace.report.file}: has {len(trace.runs)} runs; the {name} format holds one, name it: --run"
        )
    return frame


def left_out(trace: Trace, frame: pd.DataFrame, held: Collection[str]) -> list[str]:
    """A line for each non-empty column and each table that the format cannot hold."""
    numbered = pd.Series(range(1, len(frame) + 1)).astype(str).tolist()
    lost = []
    for name in frame.columns:
        if name in held or not frame[name].notna().any():
            continue
        if name == "id" and frame["id"].tolist() == numbered:
            continue
        lost.append(f"{name}: not in the format")
    if trace.measurements is not None:
        lost.append(f"measurements of {len(trace.measurements):,} requests: not in the format")
    return [
        *lost,
        *(f"table {name} of {len(table):,} rows: not in the format" for name, table in trace.tables.items()),
    ]


def rounded(times: NDArray[np.int64], unit: int, name: str) -> tuple[NDArray[np.int64], list[str]]:
    """Times in whole units of `unit` ns, rounded down, and a line if any was changed."""
    whole = times // unit
    changed = int((whole * unit != times).sum())
    return whole, [f"arrivals: {changed:,} rounded down to whole {name}"] if changed else []
