"""Mooncake's JSON lines: timestamp (ms), lengths, hash ids of 512-token blocks; sessions as in AIPerf's dialect.

Blocks of a size that divides 512 are joined under the id of the last one, which identifies all blocks before it.
Token ids are converted to blocks. Ids that are not whole numbers are numbered from 0 in order of appearance.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from traces.describe.prefix_sharing import chained
from traces.reading.table import Trace
from traces.writers.shared import left_out, rounded, workload
from traces.writing import write_bytes

BLOCK = 512
MILLISECOND = 10**6


def write(trace: Trace, path: Path) -> list[str]:
    """Write the workload; returns what is lost."""
    frame = workload(trace, "mooncake")
    times, lost = rounded(frame["arrival_ns"].to_numpy(np.int64), MILLISECOND, "milliseconds")
    names, lost_blocks = hash_ids(trace, frame)
    held = {"arrival_ns", "prompt", "output", "session", "turn", *(["blocks", "tokens"] if names is not None else [])}
    columns: dict[str, Sequence[Any]] = {
        "timestamp": times.tolist(),
        "input_length": frame["prompt"].tolist(),
        "output_length": frame["output"].tolist(),
    }
    if names is not None:
        columns["hash_ids"] = names
    if "session" in frame and frame["session"].notna().any():
        columns["session_id"] = [None if pd.isna(name) else name for name in frame["session"]]
    lines = (
        json.dumps({key: value for key, value in zip(columns, row, strict=True) if value is not None})
        for row in zip(*columns.values(), strict=True)
    )
    write_bytes(path, "\n".join([*lines, ""]).encode())
    return [*lost, *lost_blocks, *left_out(trace, frame, held)]


def hash_ids(trace: Trace, frame: pd.DataFrame) -> tuple[list[list[int]] | None, list[str]]:
    """The ids of 512-token blocks of each request (None without content), and what is lost, one line each."""
    lost = []
    if "blocks" in frame:
        size = trace.block_size
        if BLOCK % size:
            return None, [f"blocks of {size} tokens: they do not make up blocks of {BLOCK}"]
        if size != BLOCK:
            lost.append(f"blocks of {size} tokens joined to {BLOCK}: shorter common beginnings are lost")
        rows: list[list[Hashable]] = [joined(ids, BLOCK // size) for ids in frame["blocks"]]
        if trace.local_blocks:
            rows = [[(s, name) for name in row] for s, row in zip(frame["session"], rows, strict=True)]
    elif "tokens" in frame:
        rows = [list(chained(ids, BLOCK)) if ids is not None else [] for ids in frame["tokens"]]
        lost.append(f"token ids: only which blocks of {BLOCK} are equal")
    else:
        return None, []
    if all(type(name) is int for row in rows for name in row):
        return [[name for name in row if isinstance(name, int)] for row in rows], lost
    numbers: dict[Hashable, int] = {}
    return [[numbers.setdefault(name, len(numbers)) for name in row] for row in rows], lost


def joined(ids: Sequence[Hashable], count: int) -> list[Hashable]:
    """Every `count`-th id, and the last one."""
    last = [ids[-1]] if len(ids) % count else []
    return [*ids[count - 1 :: count], *last]
