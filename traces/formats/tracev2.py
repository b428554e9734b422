"""inference-sim's TraceV2 (versions 2 and 3): a CSV file of requests, and a YAML header beside it.

`request_id`, `client_id`, `tenant_id`, `slo_class`, `vllm_priority` (may be absent), `session_id`,
`round_index`, `prefix_group`, `prefix_length`, `input_tokens`, `output_tokens`, `model`, `deadline_us` (0:
none; on the arrivals' clock), `server_input_tokens` (0: not recorded), `arrival_time_us` from 0,
`send_time_us`, `first_chunk_time_us` and `last_chunk_time_us` of another clock (epoch in measured traces; 0:
not recorded), `num_chunks`, `status` (ok, error, timeout), `error_message`, `finish_reason`, and more that is
not read.

`input_tokens` is a target without the shared prefix; `server_input_tokens` counts all tokens and is used where
recorded. Rows are almost in the order of completion. TTFT counts from sending, which may be long after the arrival if
the client limits its requests in flight. Chunks are not tokens: some have no text.

The header `NAME.yaml` (or `header.yaml` in the same folder) must count in microseconds; its mode and warm-up
are noted.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from numpy.typing import NDArray

from traces.errors import BadInput, shown
from traces.reading import source
from traces.reading.columns.csv_rows import CsvRows, read_csv
from traces.reading.head import Head
from traces.reading.pieces import Piece, columns, nullable, per_token, replayable, text
from traces.reading.report import Report

NEEDED = ("request_id", "input_tokens", "output_tokens", "arrival_time_us", "status")
STATUS = {"ok": "ok", "error": "failed", "timeout": "timed_out", "": "ok"}
UNITS = ("us", "microseconds")


def matches(head: Head) -> bool:
    """Whether the header has the columns that every version has."""
    return head.has_columns(*NEEDED)


def chunks(path: Path) -> Iterator[Piece]:
    """The workload and the measurements."""
    notes = header_notes(path)
    for rows in read_csv(path, NEEDED):
        report = Report(str(path), rows=len(rows), notes=list(notes))
        count, words, instant = (partial(find, rows) for find in (_count, _words, _instant))
        arrival, _ = rows.time("arrival_time_us", "us")
        target, output, served = count("input_tokens"), count("output_tokens"), count("server_input_tokens")
        shared, turn, priority = count("prefix_length"), count("round_index"), _rank(rows, "vllm_priority")
        sent, first, last = instant("send_time_us"), instant("first_chunk_time_us"), instant("last_chunk_time_us")
        deadline = instant("deadline_us")
        states = rows.texts("status").to_pylist()
        rows.record_fault(np.array([state not in STATUS for state in states], bool), "status", "ok, error or timeout")
        rows.check()
        group = words("prefix_group")
        grouped = np.zeros(len(rows), bool) if group is None else ~pd.isna(group)
        prompt = np.where(served > 0, served, target + np.where(grouped, shared, 0))
        changed = (served > 0) & (served != target + np.where(grouped, shared, 0))
        report.change("server_input_tokens used for the prompt: it differs from input_tokens", int(changed.sum()))
        kept = replayable(rows, report, prompt, output, ("input_tokens", "output_tokens"))
        session = words("session_id")
        single = pd.isna(session) if session is not None else None
        common = {
            "id": text(rows.texts("request_id")),
            "tenant": words("tenant_id"),
            "model": words("model"),
            "session": session,
        }
        workload = columns(
            rows,
            kept,
            **common,
            arrival_ns=arrival,
            prompt=prompt,
            output=output,
            turn=None if single is None else nullable(turn, single),
            priority=nullable(priority, np.zeros(len(rows), bool)) if "vllm_priority" in rows.names else None,
            deadline_ns=nullable(np.maximum(deadline - arrival, 0), deadline == 0) if deadline.any() else None,
            prefix_group=group if grouped.any() else None,
            prefix=nullable(shared, ~grouped) if grouped.any() else None,
        )
        status = np.array([STATUS[state] for state in states], object)
        measured = None
        if sent.any() or first.any() or (status != "ok").any():
            good = (sent > 0) & (first > 0) & (status == "ok")
            ttft = np.where(good, (first - sent) / 1e9, np.nan)
            e2e = np.where(good & (last > 0), (last - sent) / 1e9, np.nan)
            measured = columns(
                rows,
                **common,
                status=text(status.tolist()),
                error=words("error_message"),
                arrival_ns=pd.array(arrival, "Int64"),
                sent_ns=nullable(sent, sent == 0),
                first_ns=nullable(first, first == 0),
                last_ns=nullable(last, last == 0),
                ttft_s=ttft,
                tpot_s=per_token(ttft, e2e, output),
                e2e_s=e2e,
                prompt=nullable(prompt, prompt == 0),
                output=nullable(output, output == 0),
            )
            report.note("TTFT and E2E count from sending; sending may lag arrival, and the clocks differ")
        yield Piece(report, 1, workload, measured)


def _count(rows: CsvRows, name: str) -> NDArray[np.int64]:
    return rows.whole(name, empty=0) if name in rows.names else np.zeros(len(rows), np.int64)


def _rank(rows: CsvRows, name: str) -> NDArray[np.int64]:
    none = np.zeros(len(rows), np.int64)
    return rows.whole(name, -(2**31), empty=0, what="ranks") if name in rows.names else none


def _words(rows: CsvRows, name: str) -> Any:
    return text(rows.texts(name)) if name in rows.names else None


def _instant(rows: CsvRows, name: str) -> NDArray[np.int64]:
    return rows.time(name, "us", empty=True)[0] if name in rows.names else np.zeros(len(rows), np.int64)


def header_notes(path: Path) -> list[str]:
    """Notes from the YAML header beside the file, if there is one. Raises BadInput for another unit of time."""
    stem = path.name.removesuffix(".gz").removesuffix(".zst").removesuffix(".csv")
    beside = [path.with_name(f"{stem}.yaml"), path.with_name("header.yaml")]
    found = next((name for name in beside if name.is_file()), None)
    if found is None:
        return []
    data = source.head(found, source.MEBI)
    try:
        header = yaml.safe_load(data)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise BadInput(f"{found}: not a YAML header: {' '.join(str(error).split())}") from None
    if not isinstance(header, dict) or "trace_version" not in header:
        return []
    if (unit := header.get("time_unit", "us")) not in UNITS:
        raise BadInput(f"{found}: time_unit is {shown(unit)}; expected microseconds")
    notes = [f"header {found.name}: trace version {header['trace_version']}, mode {header.get('mode', 'not stated')}"]
    if warm_up := header.get("warm_up_requests"):
        notes.append(f"header {found.name}: the first {warm_up} requests are warm-up")
    return notes
