"""inference-sim's TraceV2: a CSV file of requests and NAME.yaml beside it; times in microseconds.

Only the workload is written; columns of chunk times and other measurements stay empty.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from traces.reading.table import Trace
from traces.writers.shared import left_out, rounded, workload
from traces.writing import write_bytes

MICROSECOND = 1000
HEADER = "trace_version: 2\ntime_unit: microseconds\nmode: generated\nwarm_up_requests: 0\n"
TEXTS = {
    "request_id": "id",
    "tenant_id": "tenant",
    "session_id": "session",
    "prefix_group": "prefix_group",
    "model": "model",
}
EMPTY = ("client_id", "slo_class", "error_message", "finish_reason")
ZERO = (
    "image_tokens",
    "audio_tokens",
    "video_tokens",
    "reason_ratio",
    "send_time_us",
    "first_chunk_time_us",
    "last_chunk_time_us",
    "num_chunks",
)
COLUMNS = (
    *("request_id", "client_id", "tenant_id", "slo_class", "session_id", "round_index", "prefix_group"),
    *("prefix_length", "streaming", "input_tokens", "output_tokens", "text_tokens", "image_tokens", "audio_tokens"),
    *("video_tokens", "reason_ratio", "model", "deadline_us", "server_input_tokens", "arrival_time_us"),
    *("send_time_us", "first_chunk_time_us", "last_chunk_time_us", "num_chunks", "status", "error_message"),
    "finish_reason",
)
HELD = ("id", "arrival_ns", "prompt", "output", "tenant", "session", "turn", "model", "priority", "deadline_ns")


def write(trace: Trace, path: Path) -> list[str]:
    """Write the workload and its header; returns what is lost."""
    frame = workload(trace, "tracev2")
    times, lost = rounded(frame["arrival_ns"].to_numpy(np.int64), MICROSECOND, "microseconds")
    shared = whole(frame, "prefix")
    columns: dict[str, Any] = {name: [""] * len(frame) for name in EMPTY} | {name: [0] * len(frame) for name in ZERO}
    columns |= {name: texts(frame, ours) for name, ours in TEXTS.items()}
    columns |= {
        "round_index": whole(frame, "turn").tolist(),
        "prefix_length": shared.tolist(),
        "streaming": ["true"] * len(frame),
        "input_tokens": (frame["prompt"].to_numpy(np.int64) - shared).tolist(),
        "text_tokens": (frame["prompt"].to_numpy(np.int64) - shared).tolist(),
        "output_tokens": frame["output"].tolist(),
        "server_input_tokens": frame["prompt"].tolist(),
        "arrival_time_us": times.tolist(),
        "status": ["ok"] * len(frame),
    }
    deadline = whole(frame, "deadline_ns")
    columns["deadline_us"] = np.where(deadline > 0, times + deadline // MICROSECOND, 0).tolist()
    if (cut := int((deadline % MICROSECOND > 0).sum())) > 0:
        lost.append(f"deadlines: {cut:,} rounded down to whole microseconds")
    names = list(COLUMNS)
    if "priority" in frame and frame["priority"].notna().any():
        names.insert(4, "vllm_priority")
        columns["vllm_priority"] = whole(frame, "priority").tolist()
    text = io.StringIO(newline="")
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(names)
    rows.writerows(zip(*(columns[name] for name in names), strict=True))
    write_bytes(path, text.getvalue().encode())
    write_bytes(path.with_suffix(".yaml"), HEADER.encode())
    prefixed = ("prefix", "prefix_group") if "prefix_group" in frame else ()
    return [*lost, *left_out(trace, frame, (*HELD, *prefixed))]


def whole(frame: pd.DataFrame, name: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    """A column of whole numbers, 0 where it is missing."""
    if name not in frame:
        return np.zeros(len(frame), np.int64)
    return np.asarray(frame[name].fillna(0).to_numpy(np.int64))


def texts(frame: pd.DataFrame, name: str) -> list[str]:
    """A column of texts, empty where it is missing."""
    return frame[name].fillna("").tolist() if name in frame else [""] * len(frame)
