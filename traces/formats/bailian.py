"""Qwen-Bailian usage traces (anonymised, 2025): one JSON object per line.

`chat_id`, `parent_chat_id` (-1 for a first turn), `timestamp` (s from the start), `input_length`,
`output_length`, `type`, `turn` (from 1), `hash_ids` of 16-token blocks, salted. A later turn's lengths and
blocks cover the history too. A parent may be outside the file: its child then starts a session here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from traces.formats.blocks import covering
from traces.reading.columns.json_rows import read_jsonl
from traces.reading.head import Head
from traces.reading.pieces import Piece, columns, nullable, objects, replayable, text
from traces.reading.report import Report

BLOCK = 16


def matches(head: Head) -> bool:
    """Whether rows have chat ids and lengths."""
    return head.has_keys("chat_id", "timestamp", "input_length", "output_length")


def chunks(path: Path) -> Iterator[Piece]:
    """The workload, sessions by the root of their parents."""
    roots: dict[str, str] = {}
    for rows in read_jsonl(path):
        report = Report(str(path), rows=len(rows))
        rows.whole("chat_id", least=-(2**62), most=2**62, what="chats")
        parents = rows.whole("parent_chat_id", least=-1, most=2**62, empty=-1, what="chats")
        arrival, _ = rows.time("timestamp", "s")
        prompt, output = rows.whole("input_length"), rows.whole("output_length")
        turn = rows.whole("turn", least=1, empty=1, what="turns")
        blocks = covering(rows, "hash_ids", prompt, BLOCK, report)
        rows.check()
        ids = [str(value) for value in rows.values("chat_id")]
        before = [None if parent < 0 else str(parent) for parent in parents.tolist()]
        orphans = sum(parent is not None and parent not in roots and parent not in ids for parent in before)
        report.change("parent_chat_id is not in an earlier row: its session starts here", orphans)
        session = []
        for name, parent in zip(ids, before, strict=True):
            roots[name] = roots.get(parent, parent) if parent is not None else name
            session.append(roots[name])
        kept = replayable(rows, report, prompt, output, ("input_length", "output_length"))
        frame = columns(
            rows,
            kept,
            id=text(ids),
            arrival_ns=arrival,
            prompt=prompt,
            output=output,
            session=text(session),
            turn=nullable(turn - 1, np.zeros(len(rows), bool)),
            parent=text(before),
            blocks=objects(blocks) if blocks else None,
        )
        yield Piece(report, 0, frame, block_size=BLOCK if blocks else 0)
