"""inference-perf's requests: its report `per_request_lifecycle_metrics.json`, or a CSV file joined from two reports.

The report (as written up to 2026) is a JSON array of `start_time`, `end_time` (s, monotonic), `error`, and
`info` with `input_tokens`, `output_tokens` and `output_token_times`, the latter two inside `response_metrics`
in newer versions.

The CSV layout is `index, arrival_time_us` (from 0), `input_tokens, output_tokens_client, has_error, ttft_s,
e2e_s`. Its output count is the client's own tokenisation of the text, not what the engine generated, so it is
not read. The engine's fixed output length is taken from an `experiments.json` beside the file, found by the
file's name; without one there is nothing to replay. A request that the client gave up after its limit of 300 s
has counts of 0 and no TTFT.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from traces.reading import source
from traces.reading.columns.csv_rows import CsvRows, read_csv
from traces.reading.columns.json_rows import json_rows, json_value
from traces.reading.head import Head
from traces.reading.pieces import Piece, columns, nullable, objects, per_token, replayable, text
from traces.reading.report import Report

NEEDED = ("index", "arrival_time_us", "input_tokens", "output_tokens_client", "has_error", "ttft_s", "e2e_s")
CLIENT_LIMIT_S = 300.0


def matches(head: Head) -> bool:
    """Whether it is the CSV layout or the JSON report."""
    return head.has_columns(*NEEDED) or (head.opening == "[" and head.has_keys("start_time", "end_time", "info"))


def chunks(path: Path) -> Iterator[Piece]:
    """The measurements, and the workload where the output length is known."""
    if source.head(path, 64).lstrip()[:1] == b"[":
        yield _report(path)
        return
    known = output_length(path)
    for rows in read_csv(path, NEEDED):
        yield _joined(path, rows, known)


def _joined(path: Path, rows: CsvRows, known: int | None) -> Piece:
    report = Report(str(path), rows=len(rows))
    arrival, _ = rows.time("arrival_time_us", "us")
    prompt = rows.whole("input_tokens")
    failed = rows.whole("has_error", most=1, what="errors") == 1
    ttft, e2e = rows.number("ttft_s", empty=True), rows.number("e2e_s", empty=True)
    rows.check()
    late = failed & (e2e >= CLIENT_LIMIT_S)
    status = np.where(late, "timed_out", np.where(failed, "failed", "ok"))
    output = np.full(len(rows), known or 0, np.int64)
    if known is None:
        report.note(
            "no output lengths: output_tokens_client is not what the engine generated, and no experiments.json"
        )
    else:
        report.change(f"output_tokens_client replaced by the output length of experiments.json, {known}", len(rows))
    report.drop("timed out at the client: no lengths", int((late & (prompt == 0)).sum()))
    report.drop("failed: no lengths", int((failed & ~late & (prompt == 0)).sum()))
    report.drop("input_tokens is 0", int((~failed & (prompt == 0)).sum()))
    ids = text(rows.texts("index"))
    lengths = {"prompt": prompt} if known is None else {"prompt": prompt, "output": output}
    workload = columns(rows, prompt > 0, id=ids, arrival_ns=arrival, **lengths)
    measured = columns(
        rows,
        id=ids,
        status=text(status.tolist()),
        arrival_ns=pd.array(arrival, "Int64"),
        ttft_s=np.where(failed, np.nan, ttft),
        tpot_s=np.where(failed, np.nan, per_token(ttft, e2e, output)),
        e2e_s=np.where(failed, np.nan, e2e),
        prompt=nullable(prompt, prompt == 0),
        output=nullable(output, failed | (output == 0)),
    )
    return Piece(report, 1, workload, measured)


def output_length(path: Path) -> int | None:
    """The fixed output length of the experiment that the file is named after, if `experiments.json` has it."""
    beside = path.with_name("experiments.json")
    if not beside.is_file():
        return None
    found: Any = json_value(beside, source.document(beside))
    stem = path.name.removesuffix(".gz").removesuffix(".zst").removesuffix(".csv")
    for entry in found if isinstance(found, list) else []:
        if isinstance(entry, dict) and entry.get("experiment") == stem:
            try:
                length = entry["client_profile"]["data"]["shared_prefix"]["output_len"]
            except (KeyError, TypeError):
                return None
            return length if isinstance(length, int) and 0 < length < 2**31 else None
    return None


def _report(path: Path) -> Piece:
    rows = json_rows(path, json_value(path, source.document(path)))
    report = Report(str(path), rows=len(rows))
    deep = "info.response_metrics." if rows.has("info.response_metrics") else "info."
    start, _ = rows.time("start_time", "s")
    end, unended = rows.time("end_time", "s", empty=True)
    prompt = rows.whole("info.input_tokens", empty=0)
    output = rows.whole(deep + "output_tokens", empty=0)
    times = rows.times(deep + "output_token_times", "s")
    rows.check()
    failed = np.array([error is not None for error in rows.values("error")], bool)
    first = np.array([found[0] if found else 0 for found in times], np.int64)
    last = np.array([found[-1] if found else 0 for found in times], np.int64)
    streamed = np.array([bool(found) for found in times], bool) & ~failed
    ttft = np.where(streamed, (first - start) / 1e9, np.nan)
    e2e = np.where(~failed & ~unended, (end - start) / 1e9, np.nan)
    report.drop("failed: no lengths", int((failed & ((prompt == 0) | (output == 0))).sum()))
    kept = replayable(rows, report, prompt, output, ("input_tokens", "output_tokens"), ~failed)
    workload = columns(
        rows, kept | (failed & (prompt > 0) & (output > 0)), arrival_ns=start, prompt=prompt, output=output
    )
    measured = columns(
        rows,
        status=text(np.where(failed, "failed", "ok").tolist()),
        error=text([None if error is None else str(error)[:200] for error in rows.values("error")]),
        arrival_ns=pd.array(start, "Int64"),
        sent_ns=nullable(start, np.zeros(len(rows), bool)),
        first_ns=nullable(first, ~streamed),
        last_ns=nullable(last, ~streamed),
        ttft_s=ttft,
        tpot_s=per_token(ttft, e2e, output),
        e2e_s=e2e,
        itl_s=objects(np.diff(found) / 1e9 for found in times),
        prompt=nullable(prompt, prompt == 0),
        output=nullable(output, output == 0),
    )
    return Piece(report, 0, workload, measured)
