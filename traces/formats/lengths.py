"""Lengths without arrivals, as published by Vidur and Etalon: `num_prefill_tokens`, `num_decode_tokens`.

These files were tokenised for Llama 2 and filtered by total length, so their tails end at a hard limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from traces.formats import vidur
from traces.reading.columns.csv_rows import read_csv
from traces.reading.head import Head
from traces.reading.pieces import Piece, columns, replayable
from traces.reading.report import NO_ARRIVALS, Report

PROMPT, OUTPUT = NEEDED = (vidur.PROMPT, vidur.OUTPUT)


def matches(head: Head) -> bool:
    """Whether the header has both lengths and no arrivals."""
    return head.has_columns(*NEEDED) and vidur.ARRIVAL not in head.columns


def chunks(path: Path) -> Iterator[Piece]:
    """Lengths, without arrivals."""
    for rows in read_csv(path, NEEDED):
        report = Report(str(path), rows=len(rows))
        prompt, output = rows.whole(PROMPT), rows.whole(OUTPUT)
        rows.check()
        report.note(NO_ARRIVALS)
        kept = replayable(rows, report, prompt, output, (PROMPT, OUTPUT))
        yield Piece(report, 1, columns(rows, kept, prompt=prompt, output=output))
