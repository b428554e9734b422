"""ServeGen's client windows: each client's rate per window of 600 s, and the law of its gaps.

`client, window_start_s, rate_rps, cv, process, arg1, arg2`; the published `chunk-N-trace.csv` files have no
header and no client column, which is then the file's name. `process` is Gamma or Weibull of the gap between
arrivals, with shape `arg1` and scale `arg2` (s); it is empty in a window without traffic.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from traces.reading.columns.csv_rows import csv_header, read_csv
from traces.reading.head import Head
from traces.reading.pieces import Piece, columns, text
from traces.reading.report import Report

NAMES = ("client", "window_start_s", "rate_rps", "cv", "process", "arg1", "arg2")
PROCESSES = ("Gamma", "Weibull", "")
NUMBER = re.compile(r"[0-9.eE+-]+")


def matches(head: Head) -> bool:
    """Whether the header has the columns, or the first row has the form of the published files."""
    return head.has_columns(*NAMES) or _published(head.columns)


def _published(cells: tuple[str, ...]) -> bool:
    numbers = (*cells[:3], *cells[4:])
    return len(cells) == 6 and cells[3] in PROCESSES and all(NUMBER.fullmatch(cell) for cell in numbers)


def chunks(path: Path) -> Iterator[Piece]:
    """The table `rates`."""
    bare = _published(csv_header(path))
    for rows in read_csv(path, NAMES[1:] if bare else NAMES, header=NAMES[1:] if bare else ()):
        start, rate, cv = rows.number("window_start_s"), rows.number("rate_rps"), rows.number("cv")
        shape, scale = rows.number("arg1"), rows.number("arg2")
        process = rows.texts("process").to_pylist()
        rows.record_fault(
            np.array([name not in PROCESSES for name in process], bool), "process", "Gamma, Weibull or nothing"
        )
        rows.check()
        client = [path.name.split(".")[0]] * len(rows) if bare else rows.texts("client")
        frame = columns(
            rows,
            client=text(client),
            start_s=start,
            rate=rate,
            cv=cv,
            process=text(process),
            shape=shape,
            scale_s=scale,
        ).drop(columns="row")
        yield Piece(Report(str(path), rows=len(rows)), 0 if bare else 1, tables={"rates": frame})
