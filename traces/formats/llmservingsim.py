"""LLMServingSim's workloads: one JSON object per line, requests and agent sessions mixed.

A request has `input_toks`, `output_toks`, `arrival_time_ns` and often `input_tok_ids`, `output_tok_ids` (real
token ids: prefixes can be hashed exactly at any block size). A session has `session_id`, `arrival_time_ns` and
`sub_requests`, each with `input_toks`, `output_toks` and `tool_duration_ns`: the next one is sent when a
sub-request and its tool have ended. Their arrivals are the earliest possible ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from traces.errors import BadInput, shown
from traces.limits import LATEST
from traces.reading.columns.json_rows import JsonRows, read_jsonl
from traces.reading.head import Head
from traces.reading.pieces import Piece, columns, nullable, objects, replayable, text
from traces.reading.report import Report

TOOL = "tool_duration_ns"
TOKEN_IDS = "a list of token ids"


def matches(head: Head) -> bool:
    """Whether it has lengths and arrivals in ns, and no measured times."""
    return head.has_keys("input_toks", "output_toks", "arrival_time_ns") and "queued_ts" not in head.keys


def chunks(path: Path) -> Iterator[Piece]:
    """The workload; tokens where the file has them."""
    first = 1
    for lines in read_jsonl(path):
        rows, sessions = _spread(path, lines, first)
        first += len(rows)
        report = Report(str(path), rows=len(rows))
        arrival, _ = rows.time("arrival_time_ns", "ns")
        prompt, output = rows.whole("input_toks"), rows.whole("output_toks")
        think, _ = rows.time("think", "ns", empty=True)
        asked = rows.lists("input_tok_ids", is_token, TOKEN_IDS)
        given = rows.lists("output_tok_ids", is_token, TOKEN_IDS)
        rows.check()
        waits = np.array([value is not None for value in rows.values("think")], bool)
        report.change(
            "arrives when the sub-request before ends: its earliest possible time is kept", int(waits.sum())
        )
        kept = replayable(rows, report, prompt, output, ("input_toks", "output_toks"))
        for row in np.flatnonzero(waits).tolist():
            earliest = int(arrival[row - 1]) + int(think[row])
            if earliest > LATEST:
                raise BadInput(f"{rows.place(row)}: {TOOL} is {think[row]}; expected an arrival before 2^62 ns")
            arrival[row] = earliest
        turn = np.array([value or 0 for value in rows.values("turn")], np.int64)
        alone = [value is None for value in rows.values("session")]
        frame = columns(
            rows,
            kept,
            arrival_ns=arrival,
            prompt=prompt,
            output=output,
            session=text(rows.values("session")) if sessions else None,
            turn=nullable(turn, alone) if sessions else None,
            parent=text([str(first - len(rows) + row - 1) if waits[row] else None for row in range(len(rows))])
            if sessions
            else None,
            think_ns=nullable(think, ~waits) if sessions else None,
            tokens=_ids(asked, prompt, "input_tok_ids", report),
            output_tokens=_ids(given, output, "output_tok_ids", report),
        )
        yield Piece(report, 0, frame)


def is_token(value: object) -> bool:
    """Whether a value is a token id."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31


def _ids(lists: list[list[Any] | None], lengths: np.ndarray, name: str, report: Report) -> Any:
    """Lists of token ids as a column; lists of another length than stated are left out."""
    if not any(lists):
        return None
    fits = [ids is not None and len(ids) == length for ids, length in zip(lists, lengths.tolist(), strict=True)]
    misfits = sum(ids is not None and not fit for ids, fit in zip(lists, fits, strict=True))
    report.change(f"{name} is not as long as stated: ids left out", misfits)
    return objects(tuple(ids) if ids and fit else None for ids, fit in zip(lists, fits, strict=True))


def _spread(path: Path, lines: JsonRows, first: int) -> tuple[JsonRows, int]:
    """One row per request or sub-request, and the number of sessions."""
    found: list[dict[str, Any]] = []
    numbers: list[int] = []
    sessions = 0
    for row, line in enumerate(lines.objects):
        number = lines.numbers[row] if lines.numbers else row + 1
        parts = line.get("sub_requests")
        if parts is None:
            found.append({**line, "session": None, "think": None})
            numbers.append(number)
            continue
        if not isinstance(parts, list) or not parts or not all(isinstance(part, dict) for part in parts):
            raise BadInput(f"{path}, row {number}: sub_requests is {shown(parts)}; expected a list of requests")
        sessions += 1
        name, think = str(line.get("session_id", f"row {number}")), None
        for turn, part in enumerate(parts):
            arrival = line.get("arrival_time_ns")
            found.append({**part, "session": name, "turn": turn, "arrival_time_ns": arrival, "think": think})
            numbers.append(number)
            think = part.get(TOOL) or 0
    return JsonRows(path, found, first, numbers), sessions
