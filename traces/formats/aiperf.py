"""AIPerf's `profile_export.jsonl`, newer (late 2025 on) and older: one JSON object per request.

`metadata` has `request_start_ns` (epoch; `timestamp_ns` in older files), `request_end_ns`, `was_cancelled`,
`conversation_id`, `turn_index`, `benchmark_phase`; `metrics` maps names to `{value, unit}`,
`time_to_first_token` being `ttft` in older files; `error` is null or has a `code` (499: cancelled). A cancelled
or failed row has no latencies. Warm-up rows are dropped. Arrivals are the client's send times, so they follow its
schedule.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from traces.reading.columns.json_rows import JsonRows, read_jsonl
from traces.reading.head import Head
from traces.reading.pieces import Piece, columns, nullable, objects, per_token, text
from traces.reading.report import Report

SECONDS = {"s": 1.0, "sec": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
CANCELLED = 499


def matches(head: Head) -> bool:
    """Whether rows have metadata with a start, and metrics."""
    started = head.has_keys("request_start_ns") or head.has_keys("timestamp_ns")
    return head.opening == "{" and head.has_keys("metadata", "metrics") and started


def chunks(path: Path) -> Iterator[Piece]:
    """The workload and the measurements."""
    for rows in read_jsonl(path):
        report = Report(str(path), rows=len(rows))
        started = "metadata.request_start_ns" if rows.has("metadata.request_start_ns") else "metadata.timestamp_ns"
        start, _ = rows.time(started, "ns")
        end, unended = rows.time("metadata.request_end_ns", "ns", empty=True)
        prompt = rows.whole("metrics.input_sequence_length.value", empty=0)
        output = rows.whole("metrics.output_sequence_length.value", empty=0)
        counted = rows.whole("metrics.output_token_count.value", empty=0)
        turn = rows.whole("metadata.turn_index", empty=0, what="turns")
        first_token = _seconds(rows, "time_to_first_token", "ttft")
        latency = _seconds(rows, "request_latency")
        gaps = _gaps(rows, "inter_chunk_latency")
        rows.check()
        output = np.where(output == 0, counted, output)
        cells = zip(rows.values("error"), rows.values("metadata.was_cancelled"), strict=True)
        status = [_status(error, cancelled) for error, cancelled in cells]
        ok = np.array([state == "ok" for state in status], bool)
        warm = np.array([phase == "warmup" for phase in rows.values("metadata.benchmark_phase")], bool)
        report.drop("benchmark_phase is warmup", int(warm.sum()))
        unknown = ~warm & ((prompt == 0) | (output == 0))
        report.drop("cancelled or failed: no lengths", int((unknown & ~ok).sum()))
        report.drop("has no lengths", int((unknown & ok).sum()))
        session = rows.values("metadata.conversation_id")
        in_session = any(name is not None for name in session)
        names = text([None if name is None else str(name) for name in session]) if in_session else None
        ids = _ids(rows)
        workload = columns(
            rows,
            ~warm & ~unknown,
            id=ids,
            arrival_ns=start,
            prompt=prompt,
            output=output,
            session=names,
            turn=nullable(turn, [name is None for name in session]) if in_session else None,
        )
        measured = columns(
            rows,
            ~warm,
            id=ids,
            session=names,
            status=text(status),
            error=text([_message(error) for error in rows.values("error")]),
            arrival_ns=pd.array(start, "Int64"),
            sent_ns=pd.array(start, "Int64"),
            last_ns=nullable(end, unended | ~ok),
            ttft_s=np.where(ok, first_token, np.nan),
            tpot_s=np.where(ok, per_token(first_token, latency, output), np.nan),
            e2e_s=np.where(ok, latency, np.nan),
            itl_s=objects(gaps),
            prompt=nullable(prompt, prompt == 0),
            output=nullable(output, output == 0),
        )
        yield Piece(report, 0, workload, measured)


def _status(error: object, cancelled: object) -> str:
    if cancelled is True or (isinstance(error, dict) and error.get("code") == CANCELLED):
        return "cancelled"
    if error is None:
        return "ok"
    return "timed_out" if "timeout" in str(error).lower() else "failed"


def _message(error: object) -> str | None:
    found = error.get("message") if isinstance(error, dict) else error
    return None if found is None else str(found)[:200]


def _ids(rows: JsonRows) -> Any:
    """The request ids that were sent; None unless every row has one."""
    ids = rows.values("metadata.x_request_id")
    return text(ids) if all(isinstance(name, str) and name for name in ids) else None


def _seconds(rows: JsonRows, *names: str) -> np.ndarray:
    """A metric in seconds, by the first of its names that a row has; NaN where it has none."""
    found = np.full(len(rows), np.nan)
    for name in names:
        values = rows.number(f"metrics.{name}.value", empty=True)
        scale = np.array([SECONDS.get(str(unit), np.nan) for unit in rows.values(f"metrics.{name}.unit")])
        rows.record_fault(~np.isnan(values) & np.isnan(scale), f"metrics.{name}.unit", "s, ms, us or ns")
        found = np.where(np.isnan(found), values * scale, found)
    return found


def _gaps(rows: JsonRows, name: str) -> list[np.ndarray]:
    """A metric that is a list of times, in seconds."""
    lists = rows.lists(f"metrics.{name}.value", is_gap, "a list of times")
    units = rows.values(f"metrics.{name}.unit")
    return [
        np.array(values if isinstance(values, list) and all(map(is_gap, values)) else [], np.float64)
        * SECONDS.get(str(unit), np.nan)
        for values, unit in zip(lists, units, strict=True)
    ]


def is_gap(value: object) -> bool:
    """Whether a value is a time between tokens."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e15
