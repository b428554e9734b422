"""Vidur's request trace: `arrived_at` (s), `num_prefill_tokens`, `num_decode_tokens`, one CSV row per request.

Follows Vidur's `processed_traces` and its `trace_replay` generator. Other columns are not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from traces.reading.columns.csv_rows import read_csv
from traces.reading.head import Head
from traces.reading.pieces import Piece, columns, replayable
from traces.reading.report import Report

ARRIVAL, PROMPT, OUTPUT = NEEDED = ("arrived_at", "num_prefill_tokens", "num_decode_tokens")


def matches(head: Head) -> bool:
    """Whether the header has the three columns."""
    return head.has_columns(*NEEDED)


def chunks(path: Path) -> Iterator[Piece]:
    """The workload."""
    for rows in read_csv(path, NEEDED):
        report = Report(str(path), rows=len(rows))
        arrival, _ = rows.time(ARRIVAL, "s")
        prompt, output = rows.whole(PROMPT), rows.whole(OUTPUT)
        rows.check()
        kept = replayable(rows, report, prompt, output, (PROMPT, OUTPUT))
        yield Piece(report, 1, columns(rows, kept, arrival_ns=arrival, prompt=prompt, output=output))
