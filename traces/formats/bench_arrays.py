"""Benchmark results as arrays with one entry per request, as vLLM's and SGLang's clients write them.

`input_lens`, `output_lens`, `ttfts` (s; 0 where it failed), `itls` (a list of gaps each, s), `errors` (texts,
"" for none), and `start_times` (s, a monotonic clock) in newer versions. A failed request has an output length
of 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from traces.errors import BadInput, shown
from traces.formats.aiperf import is_gap
from traces.reading.columns.json_rows import JsonRows, encodable
from traces.reading.pieces import Piece, columns, nullable, objects, per_token, text
from traces.reading.report import NO_ARRIVALS, Report

FIELDS = ("input_lens", "output_lens", "ttfts", "itls", "errors", "start_times", "generated_texts")


def piece(rows: JsonRows | None, report: Report, run: str | None, scalars: dict[str, Any], timed: bool) -> Piece:
    """The measurements of one run, its workload, and its own aggregates in `runs`.

    The workload has no arrivals unless the file is `timed`: where one of its runs has start times, a run without them
    has no workload.
    """
    table = pd.DataFrame([{"run": run or "1", **scalars}])
    if rows is None:
        report.note(f"run {run or '1'} has no details of its requests, only aggregates")
        return Piece(report, 0, tables={"runs": table})
    prompt, output = rows.whole("input_lens"), rows.whole("output_lens", empty=0)
    ttft = rows.number("ttfts", empty=True)
    gaps = rows.lists("itls", is_gap, "a list of seconds")
    started = rows.has("start_times")
    start, unstarted = rows.time("start_times", "s", empty=True)
    rows.check()
    failed = np.array([bool(error) for error in rows.values("errors")], bool) | (output == 0)
    later = [np.array(found or [], np.float64) for found in gaps]
    ttft = np.where(failed, np.nan, ttft)
    if (ttft[~failed] == 0).all():
        report.change("ttfts is 0 in every row: not measured", int((~failed).sum()))
        ttft = np.full(len(rows), np.nan)
    e2e = ttft + np.array([found.sum() for found in later])
    names = {"run": None if run is None else text([run] * len(rows))}
    report.drop("failed: no output length", int((failed & (output == 0)).sum()))
    report.drop("input_lens is 0", int(((prompt == 0) & (output > 0)).sum()))
    kept = (output > 0) & (prompt > 0)
    workload = None
    if started:
        report.drop("has no start time", int((kept & unstarted).sum()))
        workload = columns(rows, kept & ~unstarted, **names, arrival_ns=start, prompt=prompt, output=output)
    elif timed:
        report.drop("no start times, as other runs of the file have: measurements only", int(kept.sum()))
    else:
        report.note(NO_ARRIVALS)
        workload = columns(rows, kept, **names, prompt=prompt, output=output)
    measured = columns(
        rows,
        **names,
        status=text(np.where(failed, "failed", "ok").tolist()),
        error=text([str(error)[:200] if error else None for error in rows.values("errors")]),
        arrival_ns=nullable(start, unstarted) if started else None,
        sent_ns=nullable(start, unstarted) if started else None,
        ttft_s=ttft,
        tpot_s=per_token(ttft, e2e, output),
        e2e_s=e2e,
        itl_s=objects(later),
        prompt=nullable(prompt, prompt == 0),
        output=nullable(output, output == 0),
    )
    return Piece(report, 0, workload, measured, {"runs": table})


def as_rows(path: Any, place: str, run: dict[str, Any], first: int) -> JsonRows | None:
    """The arrays of a run as rows, None if it has none. Raises BadInput for arrays of different lengths."""
    arrays = {name: run[name] for name in FIELDS[:-1] if isinstance(run.get(name), list)}
    if "input_lens" not in arrays or "ttfts" not in arrays:
        return None
    size = len(arrays["input_lens"])
    for name, values in arrays.items():
        if len(values) != size:
            raise BadInput(f"{path}, {place}: {name} has {len(values)} entries; expected {size}, as input_lens has")
    if not size:
        raise BadInput(f"{path}, {place}: input_lens is {shown(arrays['input_lens'])}; expected a request")
    cells = zip(*arrays.values(), strict=True)
    return JsonRows(path, [dict(zip(arrays, row, strict=True)) for row in cells], first)


def scalars(run: dict[str, Any]) -> dict[str, Any]:
    """The run's own aggregates: its values that are single numbers or texts."""
    return {
        encodable(name): encodable(value) if isinstance(value, str) else value
        for name, value in run.items()
        if isinstance(value, str | int | float) or value is None
    }
