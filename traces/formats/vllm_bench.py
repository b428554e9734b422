"""`vllm bench serve --save-result`, with `--save-detailed` for the requests: a JSON object, several if appended.

Follows vLLM up to 2026: arrays of one entry per request (see `traces.formats.bench_arrays`) beside the
aggregates.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from traces.formats import bench_arrays
from traces.reading.columns.json_rows import json_documents
from traces.reading.head import Head
from traces.reading.pieces import Piece
from traces.reading.report import Report


def matches(head: Head) -> bool:
    """Whether it has the settings that the client writes first."""
    return head.opening == "{" and head.has_keys("date", "model_id", "tokenizer_id", "num_prompts")


def chunks(path: Path) -> Iterator[Piece]:
    """The measurements, by run if there are several, the workload where start times are known."""
    return bench_pieces(path)


def bench_pieces(path: Path) -> Iterator[Piece]:
    """One piece for each run of the file."""
    runs = list(json_documents(path))
    timed = any(isinstance(run.get("start_times"), list) for run in runs)
    first = 1
    for place, run in enumerate(runs, start=1):
        rows = bench_arrays.as_rows(path, f"run {place}", run, first)
        report = Report(str(path), rows=len(rows) if rows else 0)
        first += report.rows
        name = str(place) if len(runs) > 1 else None
        yield bench_arrays.piece(rows, report, name, bench_arrays.scalars(run), timed)
