"""LLMServingSim's measurements of vLLM: one JSON object per line.

`request_id, input_toks, output_toks`, `arrival_time` in epoch seconds, and `queued_ts, scheduled_ts,
first_token_ts, last_token_ts` in seconds of the server's monotonic clock; times of the two clocks are never
subtracted. TTFT and E2E count from queue entry. A time is null or missing if the request did not reach that point.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from traces.reading.columns.json_rows import read_jsonl
from traces.reading.head import Head
from traces.reading.pieces import Piece, columns, nullable, per_token, replayable, text
from traces.reading.report import Report


def matches(head: Head) -> bool:
    """Whether rows have both clocks."""
    return head.has_keys("request_id", "input_toks", "output_toks", "arrival_time", "queued_ts")


def chunks(path: Path) -> Iterator[Piece]:
    """The workload and the measurements."""
    for rows in read_jsonl(path):
        report = Report(str(path), rows=len(rows))
        arrival, _ = rows.time("arrival_time", "s")
        prompt, output = rows.whole("input_toks"), rows.whole("output_toks")
        queued, unqueued = rows.time("queued_ts", "s", empty=True)
        admitted, unadmitted = rows.time("scheduled_ts", "s", empty=True)
        first, unstarted = rows.time("first_token_ts", "s", empty=True)
        last, unended = rows.time("last_token_ts", "s", empty=True)
        rows.check()
        failed = unqueued | unstarted | unended
        ttft = np.where(unqueued | unstarted, np.nan, (first - queued) / 1e9)
        e2e = np.where(unqueued | unended, np.nan, (last - queued) / 1e9)
        report.note("TTFT, wait and E2E count from queue entry; arrivals are on another clock (epoch)")
        ids = text(rows.texts("request_id"))
        kept = replayable(rows, report, prompt, output, ("input_toks", "output_toks"))
        workload = columns(rows, kept, id=ids, arrival_ns=arrival, prompt=prompt, output=output)
        measured = columns(
            rows,
            id=ids,
            status=text(np.where(failed, "failed", "ok").tolist()),
            arrival_ns=pd.array(arrival, "Int64"),
            queued_ns=nullable(queued, unqueued),
            scheduled_ns=nullable(admitted, unadmitted),
            first_ns=nullable(first, unstarted),
            last_ns=nullable(last, unended),
            wait_s=np.where(unqueued | unadmitted, np.nan, (admitted - queued) / 1e9),
            ttft_s=ttft,
            tpot_s=per_token(ttft, e2e, output),
            e2e_s=e2e,
            prompt=nullable(prompt, prompt == 0),
            output=nullable(output, failed | (output == 0)),
        )
        yield Piece(report, 0, workload, measured)
