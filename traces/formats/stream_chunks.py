"""Times of streamed chunks beside a TraceV2 file: `request_id, chunk_index, timestamp_us` (epoch), a CSV row each.

A request's first and last chunks may carry no token (its role, its usage): their gaps are below 0.1 ms.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from traces.reading.columns.csv_rows import read_csv
from traces.reading.head import Head
from traces.reading.pieces import Piece, columns, text
from traces.reading.report import Report

NEEDED = ("request_id", "chunk_index", "timestamp_us")


def matches(head: Head) -> bool:
    """Whether the header has the three columns."""
    return head.has_columns(*NEEDED)


def chunks(path: Path) -> Iterator[Piece]:
    """The table `chunks`; times count from the first row's."""
    zero: int | None = None
    for rows in read_csv(path, NEEDED):
        time, _ = rows.time("timestamp_us", "us")
        chunk = rows.whole("chunk_index", what="chunks")
        rows.check()
        zero = int(time[0]) if zero is None else zero
        frame = columns(rows, id=text(rows.texts("request_id")), chunk=chunk, at_ns=time - zero).drop(columns="row")
        yield Piece(Report(str(path), rows=len(rows)), 1, tables={"chunks": frame})
