"""GuideLLM's report in JSON, version 2 (0.4 and later): `benchmarks`, each with its `requests` by outcome.

`requests.successful`, `.incomplete`, `.errored` are arrays of `request_id`, `info.timings` (epoch s:
`targeted_start`, `request_start`, `first_token_iteration`, `last_token_iteration`, `request_end`), `prompt_tokens`,
`output_tokens` (or `input_metrics.total_tokens`, `output_metrics.total_tokens`). An incomplete request was cut off by
the end of its benchmark. Each benchmark is a run. Requests that the report excludes have no row. Where a planned
start is on another clock than the real one, as the first ones of version 0.8.1, the real one is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from traces.errors import BadInput, shown
from traces.reading.columns.json_rows import JsonRows, json_documents
from traces.reading.head import Head
from traces.reading.pieces import Piece, columns, nullable, per_token, text
from traces.reading.plausibility import far_off
from traces.reading.report import Report

OUTCOMES = {"successful": "ok", "incomplete": "cancelled", "errored": "failed"}
TIMES = "info.timings."


def matches(head: Head) -> bool:
    """Whether it starts like a GuideLLM report."""
    return head.opening == "{" and head.has_keys("metadata", "benchmarks") and "guidellm" in head.text.lower()


def chunks(path: Path) -> Iterator[Piece]:
    """The workload and the measurements, by benchmark."""
    first = 1
    for report in json_documents(path):
        benchmarks: Any = report.get("benchmarks")
        if not isinstance(benchmarks, list) or not benchmarks:
            raise BadInput(f"{path}: benchmarks is {shown(benchmarks)}; expected a list of benchmarks")
        for place, benchmark in enumerate(benchmarks, start=1):
            rows = _rows(path, place, benchmark, first)
            first += len(rows)
            yield _piece(path, rows, str(place) if len(benchmarks) > 1 else None)


def _rows(path: Path, place: int, benchmark: Any, first: int) -> JsonRows:
    requests = benchmark.get("requests") if isinstance(benchmark, dict) else None
    if not isinstance(requests, dict):
        raise BadInput(f"{path}: benchmark {place}: requests is {shown(requests)}; expected requests by outcome")
    found = []
    for outcome in OUTCOMES:
        for request in requests.get(outcome) or []:
            if not isinstance(request, dict):
                raise BadInput(f"{path}: benchmark {place}: {outcome} holds {shown(request)}; expected a request")
            found.append({**request, "outcome": outcome})
    return JsonRows(path, found, first)


def _piece(path: Path, rows: JsonRows, run: str | None) -> Piece:
    report = Report(str(path), rows=len(rows))
    due, undue = rows.time(TIMES + "targeted_start", "s", empty=True, signed=True)
    sent, unsent = rows.time(TIMES + "request_start", "s", empty=True)
    first, unstarted = rows.time(TIMES + "first_token_iteration", "s", empty=True)
    last, unended = rows.time(TIMES + "last_token_iteration", "s", empty=True)
    end, open_end = rows.time(TIMES + "request_end", "s", empty=True)
    prompt = _count(rows, "prompt_tokens", "input_metrics.total_tokens", "input_metrics.text_tokens")
    output = _count(rows, "output_tokens", "output_metrics.total_tokens", "output_metrics.text_tokens")
    cached = rows.whole("cached_tokens", empty=0)
    rows.check()
    outcomes = [OUTCOMES[name] for name in rows.values("outcome")]
    status = [
        "timed_out" if state == "failed" and "timeout" in str(error).lower().replace(" ", "") else state
        for state, error in zip(outcomes, rows.values("info.error"), strict=True)
    ]
    ok = np.array([state == "ok" for state in status], bool)
    odd = far_off(due, sent[~unsent], end[~open_end]) & ~undue
    report.change("targeted_start is on another clock than request_start, which is used", int((odd & ~unsent).sum()))
    undue |= odd
    arrival, unknown = np.where(undue, sent, due), undue & unsent
    report.drop("has no start", int(unknown.sum()))
    lengthless = ~unknown & ((prompt == 0) | (output == 0))
    report.drop("cancelled or failed: no lengths", int((lengthless & ~ok).sum()))
    report.drop("has no lengths", int((lengthless & ok).sum()))
    finish, unfinished = np.where(open_end, last, end), open_end & unended
    ttft = np.where(ok & ~unsent & ~unstarted, (first - sent) / 1e9, np.nan)
    e2e = np.where(ok & ~unsent & ~unfinished, (finish - sent) / 1e9, np.nan)
    names = {
        "run": None if run is None else text([run] * len(rows)),
        "id": text([None if name is None else str(name) for name in rows.values("request_id")]),
    }
    workload = columns(rows, ~unknown & ~lengthless, **names, arrival_ns=arrival, prompt=prompt, output=output)
    measured = columns(
        rows,
        **names,
        status=text(status),
        error=text([None if error is None else str(error)[:200] for error in rows.values("info.error")]),
        arrival_ns=nullable(arrival, unknown),
        sent_ns=nullable(sent, unsent),
        first_ns=nullable(first, unstarted),
        last_ns=nullable(finish, unfinished),
        ttft_s=ttft,
        tpot_s=per_token(ttft, np.where(unended, e2e, (last - sent) / 1e9), output),
        e2e_s=e2e,
        prompt=nullable(prompt, prompt == 0),
        output=nullable(output, output == 0),
        cached=nullable(cached, rows.empty("cached_tokens")) if rows.has("cached_tokens") else None,
    )
    return Piece(report, 0, workload, measured)


def _count(rows: JsonRows, *names: str) -> np.ndarray:
    """A token count by the first of its names that a row has, 0 where it has none."""
    found = np.zeros(len(rows), np.int64)
    for name in names:
        found = np.where(found == 0, rows.whole(name, empty=0), found)
    return found
