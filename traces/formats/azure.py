"""Azure LLM inference traces of 2023, 2024 and 2025 (multimodal): one CSV row per request.

Columns, in any order: TIMESTAMP, ContextTokens, GeneratedTokens, and NumImages in 2025. Times have no zone and
seven fraction digits in 2023 (`2023-11-16 18:15:46.6805900`), a zone and six or none in 2024 (`2024-05-12
00:00:00+00:00`), and `2024-10-15T12:00:00.269Z` in 2025; the two files of 2023 share one clock. There are no
ids. Follows the files published up to 2025.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from traces.errors import BadInput, shown
from traces.reading.columns.csv_rows import read_csv
from traces.reading.head import Head
from traces.reading.pieces import Piece, columns, nullable, replayable
from traces.reading.report import Report

TIMESTAMP, PROMPT, OUTPUT = NEEDED = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
IMAGES = "NumImages"


def matches(head: Head) -> bool:
    """Whether the header has the three columns."""
    return head.has_columns(*NEEDED)


def chunks(path: Path) -> Iterator[Piece]:
    """The workload. Raises BadInput for an unknown column and for an invalid row."""
    for rows in read_csv(path, NEEDED):
        for extra in (name for name in rows.names if name not in (*NEEDED, IMAGES)):
            raise BadInput(
                f"{path}, row 1: unknown column {shown(extra)}; expected {','.join(NEEDED)} and perhaps {IMAGES}"
            )
        report = Report(str(path), rows=len(rows))
        arrival, _ = rows.time(TIMESTAMP, "iso")
        prompt, output = rows.whole(PROMPT), rows.whole(OUTPUT)
        images = rows.whole(IMAGES, what="images") if IMAGES in rows.names else None
        rows.check()
        kept = replayable(rows, report, prompt, output, (PROMPT, OUTPUT))
        frame = columns(
            rows,
            kept,
            arrival_ns=arrival,
            prompt=prompt,
            output=output,
            images=None if images is None else nullable(images, images < 0),
        )
        yield Piece(report, 1, frame)
