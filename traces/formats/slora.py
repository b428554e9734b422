"""Results of S-LoRA's and VTC's benchmarks: one JSON object per line, each a whole run.

`config` and `result`; `result.responses` has `adapter_dir` (the tenant), `prompt_len`, `output_len`, `req_time`
(s from the start), `first_token_latency`, `request_latency` (s). A request that the scheduler throttled has
latencies of -1, while `num_abort` stays 0. Follows the VTC artifact.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from traces.errors import BadInput, shown
from traces.reading import source
from traces.reading.columns.json_rows import JsonRows, json_object
from traces.reading.head import Head
from traces.reading.pieces import Piece, columns, nullable, per_token, replayable, text
from traces.reading.report import Report


def matches(head: Head) -> bool:
    """Whether it has responses with the fields."""
    return head.has_keys("result", "responses", "prompt_len", "output_len", "request_latency", "req_time")


def chunks(path: Path) -> Iterator[Piece]:
    """The workload and the measurements, by run if there are several."""
    results = [(number, json_object(path, line, number, finite=False)) for number, line in source.lines(path)]
    first = 1
    for place, (number, line) in enumerate(results, start=1):
        result: Any = line.get("result")
        responses = result.get("responses") if isinstance(result, dict) else None
        if not isinstance(responses, list) or not responses or not all(isinstance(item, dict) for item in responses):
            raise BadInput(
                f"{path}, row {number}: result.responses is {shown(responses)}; expected a list of requests"
            )
        rows = JsonRows(path, responses, first, [number] * len(responses))
        first += len(responses)
        yield _piece(path, rows, str(place) if len(results) > 1 else None, result)
    if not results:
        raise BadInput(f"{path}: the file is empty; expected a JSON object per run")


def _piece(path: Path, rows: JsonRows, run: str | None, result: dict[str, Any]) -> Piece:
    report = Report(str(path), rows=len(rows))
    arrival, _ = rows.time("req_time", "s")
    prompt, output = rows.whole("prompt_len"), rows.whole("output_len")
    ttft, e2e = rows.number("first_token_latency", least=-1), rows.number("request_latency", least=-1)
    rows.check()
    throttled = (ttft < 0) | (e2e < 0)
    ttft, e2e = np.where(throttled, np.nan, ttft), np.where(throttled, np.nan, e2e)
    report.change("latencies are -1: throttled, without times", int(throttled.sum()))
    if throttled.any() and result.get("num_abort") == 0:
        report.note("num_abort is 0 though requests were throttled")
    names = {"run": None if run is None else text([run] * len(rows)), "tenant": text(rows.texts("adapter_dir"))}
    kept = replayable(rows, report, prompt, output, ("prompt_len", "output_len"))
    workload = columns(rows, kept, **names, arrival_ns=arrival, prompt=prompt, output=output)
    measured = columns(
        rows,
        **names,
        status=text(np.where(throttled, "throttled", "ok").tolist()),
        arrival_ns=pd.array(arrival, "Int64"),
        sent_ns=pd.array(arrival, "Int64"),
        ttft_s=ttft,
        tpot_s=per_token(ttft, e2e, output),
        e2e_s=e2e,
        prompt=nullable(prompt, prompt == 0),
        output=nullable(output, throttled | (output == 0)),
    )
    return Piece(report, 0, workload, measured)
