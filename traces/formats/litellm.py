"""LiteLLM gateway logs: one JSON object per request.

Either the gateway's standard payload, with `startTime`, `endTime`, `completionStartTime` (epoch s), or a reduced log
with `timestamp` (ISO 8601) of the completion: it has no arrivals, so the completion is used as arrival, counted as
changed. Further `prompt_tokens`, `completion_tokens`, `status`, `model`, `session` (or `trace_id`). A reply from the
gateway's cache (`cost` 0 and `response_created` well before `timestamp`, or `cache_hit`) took no engine time:
it is no row of the workload, and counted. The
provider's prefix of model names is removed. Of failures the `error_code` in `error_information` tells throttled
(429) and cancelled (499) ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from traces.reading.columns.json_rows import JsonRows, read_jsonl
from traces.reading.head import Head
from traces.reading.pieces import Piece, columns, nullable, per_token, replayable, text
from traces.reading.report import Report
from traces.reading.table import CODES

CACHED_BEFORE_S = 1.0


def matches(head: Head) -> bool:
    """Whether rows have the token counts, a status and one of the clocks."""
    timed = head.has_keys("response_created", "timestamp") or head.has_keys("startTime", "endTime")
    return head.opening == "{" and head.has_keys("prompt_tokens", "completion_tokens", "status", "model") and timed


def chunks(path: Path) -> Iterator[Piece]:
    """The workload and the outcome of each request."""
    for rows in read_jsonl(path):
        report = Report(str(path), rows=len(rows))
        full = rows.has("startTime")
        arrival, _ = rows.time("startTime", "s") if full else rows.time("timestamp", "iso")
        first, unstarted = rows.time("completionStartTime", "s", empty=True)
        end, unended = rows.time("endTime", "s", empty=True)
        created, uncreated = rows.time("response_created", "s", empty=True)
        prompt, output = rows.whole("prompt_tokens", empty=0), rows.whole("completion_tokens", empty=0)
        rows.check()
        if not full:
            report.change("timestamp is the completion: used as arrival, which is not logged", len(rows))
        failed = np.array([state != "success" for state in rows.values("status")], bool)
        cached = np.array([hit is True or hit == "True" for hit in rows.values("cache_hit")], bool)
        free = np.array([cost == 0 for cost in rows.values("cost")], bool)
        cached |= ~uncreated & free & ((arrival - created) / 1e9 > CACHED_BEFORE_S)
        if probes := _probes(rows, output):
            report.note(f"sessions that begin with a probe of 1 output token: {probes:,}")
        names = [str(name).rpartition("/")[2] if name else None for name in rows.values("model")]
        cut = sum(name != model for name, model in zip(names, rows.values("model"), strict=True))
        report.change("the provider's prefix is removed from the model's name", cut)
        report.drop("replies from the gateway's cache: no engine time", int(cached.sum()))
        failed_alone = failed & ~cached
        report.drop("failed: no lengths", int((failed_alone & ((prompt == 0) | (output == 0))).sum()))
        kept = replayable(rows, report, prompt, output, ("prompt_tokens", "completion_tokens"), ~failed & ~cached)
        kept |= failed_alone & (prompt > 0) & (output > 0)
        session = rows.values("session") if rows.has("session") else [None] * len(rows)
        common = {
            "model": text(names),
            "session": text([None if name is None else str(name) for name in session]),
        }
        workload = columns(rows, kept, **common, arrival_ns=arrival, prompt=prompt, output=output)
        good = ~failed & full
        ttft = np.where(good & ~unstarted, (first - arrival) / 1e9, np.nan)
        e2e = np.where(good & ~unended, (end - arrival) / 1e9, np.nan)
        codes = [
            _code(told) if wrong else "" for wrong, told in zip(failed, rows.values("error_information"), strict=True)
        ]
        measured = columns(
            rows,
            **common,
            status=text(
                [CODES.get(code, "failed") if wrong else "ok" for wrong, code in zip(failed, codes, strict=True)]
            ),
            arrival_ns=pd.array(arrival, "Int64"),
            ttft_s=ttft,
            tpot_s=per_token(ttft, e2e, output),
            e2e_s=e2e,
            prompt=nullable(prompt, prompt == 0),
            output=nullable(output, output == 0),
        )
        yield Piece(report, 0, workload, measured)


def _code(told: object) -> str:
    """The status code that `error_information` gives; "" without one."""
    return str(told.get("error_code") or "") if isinstance(told, dict) else ""


def _probes(rows: JsonRows, output: np.ndarray) -> int:
    """How many sessions begin with a request of one output token."""
    seen: set[str] = set()
    probes = 0
    for name, tokens in zip(rows.values("session"), output.tolist(), strict=True):
        if name is not None and str(name) not in seen:
            seen.add(str(name))
            probes += tokens == 1
    return probes
