"""Mooncake's traces (FAST 2025 release) and AIPerf's dialect of them: one JSON object per line.

`timestamp` (ms), `input_length`, `output_length`, `hash_ids` of 512-token blocks. An id identifies its block and all
before it; the last one is that of a partial block, which matches only the same end of a prompt. Arrivals of the
conversation and tool-agent traces are snapped to ticks of about 3 s.

The dialect (AIPerf's `mooncake_trace` in its documentation of 2026) may leave out `hash_ids`, `output_length` and
`timestamp`; rows with the same `session_id` are turns, of which later ones may have a `delay` (ms after the end of
the turn before) instead of a time. Rows with text, messages or payloads instead of token counts are dropped. With a
`hash_id_scope` of "local", ids are comparable only within a session.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from traces.errors import BadInput
from traces.formats.blocks import covering
from traces.limits import LATEST
from traces.reading.columns.json_rows import JsonRows, read_jsonl
from traces.reading.head import Head
from traces.reading.pieces import Piece, columns, nullable, objects, replayable, text
from traces.reading.report import Report

BLOCK = 512
MILLISECOND = 10**6


def matches(head: Head) -> bool:
    """Whether rows have lengths and a time or blocks, and no chat ids."""
    timed = head.has_keys("timestamp") or head.has_keys("hash_ids") or head.has_keys("session_id")
    return head.opening == "{" and head.has_keys("input_length") and timed and "chat_id" not in head.keys


def chunks(path: Path) -> Iterator[Piece]:
    """The workload, with blocks where the file has them."""
    turns = Turns()
    for rows in read_jsonl(path):
        report = Report(str(path), rows=len(rows))
        prompt = rows.whole("input_length", empty=0)
        output = rows.whole("output_length", empty=0)
        time, untimed = rows.time("timestamp", "ms", empty=True)
        delay, undelayed = rows.time("delay", "ms", empty=True)
        blocks = covering(rows, "hash_ids", prompt, BLOCK, report)
        rows.check()
        session = [None if value is None else str(value) for value in rows.values("session_id")]
        timeless = untimed.all() and undelayed.all() and not turns.timed
        arrival, turn, parent = turns.place(rows, time, ~untimed | timeless, delay, ~undelayed, session)
        waits = ~undelayed & (turn > 0)
        report.change("arrives a delay after the turn before: its earliest possible time is kept", int(waits.sum()))
        unknown = rows.empty("input_length")
        report.drop("has no input_length: text and messages have no token count here", int(unknown.sum()))
        unasked = rows.empty("output_length") & ~unknown
        report.drop("has no output_length", int(unasked.sum()))
        kept = replayable(rows, report, prompt, output, ("input_length", "output_length"), ~unknown & ~unasked)
        turns.timed |= not timeless
        in_session = any(name is not None for name in session)
        local = "local" in rows.values("hash_id_scope")
        frame = columns(
            rows,
            kept,
            arrival_ns=None if timeless else arrival,
            prompt=prompt,
            output=output,
            session=text(session) if in_session else None,
            turn=nullable(turn, [name is None for name in session]) if in_session else None,
            parent=text(parent) if in_session else None,
            think_ns=nullable(delay, ~waits) if in_session else None,
            blocks=objects(blocks) if blocks else None,
        )
        yield Piece(report, 0, frame, block_size=BLOCK if blocks else 0, local_blocks=local)


class Turns:
    """For each session, the turns so far and the earliest possible arrival of the last."""

    def __init__(self) -> None:
        self.timed = False
        self.counts: Counter[str] = Counter()
        self.last: dict[str, tuple[int, int]] = {}

    def place(
        self,
        rows: JsonRows,
        time: np.ndarray,
        timed: np.ndarray,
        delay: np.ndarray,
        delayed: np.ndarray,
        session: list[str | None],
    ) -> tuple[np.ndarray, np.ndarray, list[str | None]]:
        """Arrival (ns), turn and the id of the turn before, per row; delays are from the end of the turn before.

        Raises BadInput for a row with neither a time nor, in a session, a turn before it.
        """
        arrival, turn = time.copy(), np.zeros(len(rows), np.int64)
        parent: list[str | None] = [None] * len(rows)
        for row, name in enumerate(session):
            before = self.last.get(name) if name is not None else None
            if not timed[row]:
                if before is None:
                    raise BadInput(f"{rows.place(row)}: timestamp is missing; expected milliseconds")
                earliest = before[0] + (int(delay[row]) if delayed[row] else 0)
                if earliest > LATEST:
                    raise BadInput(f"{rows.place(row)}: delay is {delay[row]} ns; expected an arrival before 2^62 ns")
                arrival[row] = earliest
            if name is None:
                continue
            turn[row] = self.counts[name]
            parent[row] = str(before[1]) if before else None
            self.counts[name] += 1
            self.last[name] = (int(arrival[row]), rows.first + row)
        return arrival, turn, parent
