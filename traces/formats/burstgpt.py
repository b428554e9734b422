"""BurstGPT, releases v1 and v2/v3: one CSV row per request of a campus's GPT service.

Columns are found by name, because the later release inserts two (`Session ID`, `Elapsed time`). Timestamp is in
seconds since local midnight of the first day, whole in practice, so many tie. A row whose Response tokens are 0
failed: it is a measurement, not a request to replay. Session ID is empty on API rows. Elapsed time is end to
end at the original service in whole seconds; 0 is common. Model is `ChatGPT` (GPT-3.5) or `GPT-4`. Prompt
counts of later turns usually include the session's history, but fall again within some sessions.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from traces.reading.columns.csv_rows import read_csv
from traces.reading.head import Head
from traces.reading.pieces import Piece, columns, nullable, text
from traces.reading.report import Report

NEEDED = ("Timestamp", "Model", "Request tokens", "Response tokens", "Log Type")
FAILED = "Response tokens is 0: the request failed"


def matches(head: Head) -> bool:
    """Whether the header has the columns of the first release."""
    return head.has_columns(*NEEDED)


def chunks(path: Path) -> Iterator[Piece]:
    """The workload and, for the later release, end-to-end times."""
    for rows in read_csv(path, NEEDED):
        report = Report(str(path), rows=len(rows))
        arrival, _ = rows.time("Timestamp", "s")
        prompt, output = rows.whole("Request tokens"), rows.whole("Response tokens")
        sessions = text(rows.texts("Session ID")) if "Session ID" in rows.names else None
        elapsed = rows.number("Elapsed time", empty=True) if "Elapsed time" in rows.names else None
        rows.check()
        failed = output == 0
        report.drop(FAILED, int(failed.sum()))
        empty = ~failed & (prompt == 0)
        report.drop("Request tokens is 0", int(empty.sum()))
        model = text(rows.texts("Model"))
        workload = columns(
            rows,
            ~failed & ~empty,
            arrival_ns=arrival,
            prompt=prompt,
            output=output,
            model=model,
            session=sessions,
        )
        measured = columns(
            rows,
            status=text(np.where(failed, "failed", "ok").tolist()),
            model=model,
            session=sessions,
            arrival_ns=pd.array(arrival, "Int64"),
            e2e_s=elapsed,
            prompt=nullable(prompt, failed),
            output=nullable(output, failed),
        )
        yield Piece(report, 1, workload, measured)
