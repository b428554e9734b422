"""LLMPerf's `individual_responses.json`: a JSON array of requests of a closed loop, without start times.

`number_input_tokens, number_output_tokens, ttft_s, end_to_end_latency_s, error_code` (null: none), `error_msg`.
Its `inter_token_latency_s`, a mean over all tokens, is not read. Follows LLMPerf as archived in 2024.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from traces.reading import source
from traces.reading.columns.json_rows import json_rows, json_value
from traces.reading.head import Head
from traces.reading.pieces import Piece, columns, nullable, per_token, text
from traces.reading.report import NO_ARRIVALS, Report


def matches(head: Head) -> bool:
    """Whether it is an array with the fields."""
    return head.opening == "[" and head.has_keys("error_code", "ttft_s", "end_to_end_latency_s")


def chunks(path: Path) -> Iterator[Piece]:
    """The measurements, and the workload without arrivals."""
    rows = json_rows(path, json_value(path, source.document(path)))
    report = Report(str(path), rows=len(rows))
    prompt = rows.whole("number_input_tokens", empty=0)
    output = rows.whole("number_output_tokens", empty=0)
    ttft = rows.number("ttft_s", least=-1, empty=True)
    e2e = rows.number("end_to_end_latency_s", least=-1, empty=True)
    rows.check()
    failed = np.array([code is not None for code in rows.values("error_code")], bool)
    empty = ~failed & (output == 0)
    report.note(NO_ARRIVALS)
    report.drop("error_code is set: failed", int(failed.sum()))
    report.drop("number_output_tokens is 0: failed", int(empty.sum()))
    failed |= empty
    report.drop("number_input_tokens is 0", int((~failed & (prompt == 0)).sum()))
    workload = columns(rows, ~failed & (prompt > 0), prompt=prompt, output=output)
    measured = columns(
        rows,
        status=text(np.where(failed, "failed", "ok").tolist()),
        error=text([str(message)[:200] if message else None for message in rows.values("error_msg")]),
        ttft_s=np.where(failed, np.nan, ttft),
        tpot_s=np.where(failed, np.nan, per_token(ttft, e2e, output)),
        e2e_s=np.where(failed, np.nan, e2e),
        prompt=nullable(prompt, prompt == 0),
        output=nullable(output, failed),
    )
    yield Piece(report, 0, workload, measured)
