"""A per-request log of an instrumented engine: a JSON object with `config` and an entry `trace:RATE:N:SEED` per run.

A run has `t0` and `requests` of `id`, `prompt_len`, `max_tokens`, `planned` and `arrival` (s from t0),
`tok_times` (s from t0, one per token), `ttft`, `e2e`, `prompt_token_ids`. `arrival` is the actual time of
entry.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from traces.errors import BadInput, shown
from traces.formats.llmservingsim import TOKEN_IDS, is_token
from traces.reading.columns.json_rows import JsonRows, json_documents
from traces.reading.head import Head
from traces.reading.pieces import Piece, columns, nullable, objects, per_token, text
from traces.reading.report import Report

RUN = "trace:"


def matches(head: Head) -> bool:
    """Whether it has a configuration and a run."""
    return head.opening == "{" and head.has_keys("config", "requests", "tok_times", "planned")


def chunks(path: Path) -> Iterator[Piece]:
    """The workload, with tokens, and the measurements, by run."""
    first = 1
    for log in json_documents(path):
        runs = {name: run for name, run in log.items() if name.startswith(RUN)}
        if not runs:
            raise BadInput(f"{path}: no entry {RUN}...; expected one per run")
        for name, run in runs.items():
            requests: Any = run.get("requests") if isinstance(run, dict) else None
            if not isinstance(requests, list) or not requests or not all(isinstance(item, dict) for item in requests):
                raise BadInput(f"{path}: {name}: requests is {shown(requests)}; expected a list of requests")
            rows = JsonRows(path, requests, first)
            first += len(rows)
            yield _piece(path, rows, name.removeprefix(RUN))


def _piece(path: Path, rows: JsonRows, run: str) -> Piece:
    report = Report(str(path), rows=len(rows))
    arrival, _ = rows.time("arrival", "s")
    prompt, limit = rows.whole("prompt_len", least=1), rows.whole("max_tokens", least=1)
    times = rows.times("tok_times", "s")
    tokens = rows.lists("prompt_token_ids", is_token, TOKEN_IDS)
    rows.check()
    output = np.array([len(found) for found in times], np.int64)
    begun = output > 0
    report.drop("tok_times is empty: failed", int((~begun).sum()))
    first = np.array([found[0] if found else 0 for found in times], np.int64)
    last = np.array([found[-1] if found else 0 for found in times], np.int64)
    fits = [ids is not None and len(ids) == size for ids, size in zip(tokens, prompt.tolist(), strict=True)]
    common = {"id": text(rows.texts("id")), "run": text([run] * len(rows))}
    ttft = np.where(begun, (first - arrival) / 1e9, np.nan)
    e2e = np.where(begun, (last - arrival) / 1e9, np.nan)
    workload = columns(
        rows,
        begun,
        **common,
        arrival_ns=arrival,
        prompt=prompt,
        output=output,
        max_output=nullable(np.maximum(limit, output), np.zeros(len(rows), bool)),
        tokens=objects(tuple(ids) if ids and fit else None for ids, fit in zip(tokens, fits, strict=True)),
    )
    measured = columns(
        rows,
        **common,
        status=text(np.where(begun, "ok", "failed").tolist()),
        arrival_ns=pd.array(arrival, "Int64"),
        sent_ns=pd.array(arrival, "Int64"),
        first_ns=nullable(first, ~begun),
        last_ns=nullable(last, ~begun),
        ttft_s=ttft,
        tpot_s=per_token(ttft, e2e, output),
        e2e_s=e2e,
        itl_s=objects(np.diff(found) / 1e9 for found in times),
        prompt=nullable(prompt, prompt == 0),
        output=nullable(output, ~begun),
    )
    return Piece(report, 0, workload, measured)
