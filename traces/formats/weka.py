"""WEKA's agent traces (kv-cache-tester, 2026): one JSON object per conversation.

`id`, `block_size`, `hash_id_scope`, and `requests` of `t` (s), `type`, `model`, `in`, `out`, `hash_ids`, and perhaps
`api_time`, `ttft`, `think_time` (s). A request of type `subagent` holds `requests` of its own; a conversation and its
subagents share their ids. With a scope of "local", ids are comparable only within a conversation.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from traces.errors import BadInput, shown
from traces.formats.blocks import covering
from traces.reading.columns.json_rows import JsonRows, json_documents
from traces.reading.head import Head
from traces.reading.pieces import Piece, columns, nullable, objects, per_token, replayable, text
from traces.reading.report import Report


def matches(head: Head) -> bool:
    """Whether it has the fields of a conversation."""
    return head.opening == "{" and head.has_keys("id", "block_size", "requests", "t", "in", "out")


def chunks(path: Path) -> Iterator[Piece]:
    """The workload and what was measured, a piece per conversation."""
    first = 1
    for place, conversation in enumerate(json_documents(path), start=1):
        size: Any = conversation.get("block_size")
        if not isinstance(size, int) or isinstance(size, bool) or not 0 < size < 2**20:
            raise BadInput(f"{path}, conversation {place}: block_size is {shown(size)}; expected a number of tokens")
        found = list(_requests(path, place, conversation.get("requests")))
        if not found:
            raise BadInput(f"{path}, conversation {place}: requests is empty; expected a request")
        rows = JsonRows(path, found, first)
        first += len(found)
        yield _piece(path, rows, str(conversation.get("id")), size, conversation.get("hash_id_scope") == "local")


def _requests(path: Path, place: int, requests: object) -> Iterator[dict[str, Any]]:
    if not isinstance(requests, list) or not all(isinstance(item, dict) for item in requests):
        raise BadInput(f"{path}, conversation {place}: requests is {shown(requests)}; expected a list of requests")
    for item in requests:
        if item.get("type") == "subagent":
            for inner in item.get("requests") or []:
                if not isinstance(inner, dict):
                    raise BadInput(f"{path}, conversation {place}: found {shown(inner)}; expected a request")
                yield inner
        else:
            yield item


def _piece(path: Path, rows: JsonRows, name: str, size: int, local: bool) -> Piece:
    report = Report(str(path), rows=len(rows))
    arrival, _ = rows.time("t", "s")
    prompt, output = rows.whole("in"), rows.whole("out")
    ttft, e2e = rows.number("ttft", empty=True), rows.number("api_time", empty=True)
    blocks = covering(rows, "hash_ids", prompt, size, report)
    rows.check()
    kept = replayable(rows, report, prompt, output, ("in", "out"))
    common = {"session": text([name] * len(rows)), "model": text(rows.texts("model"))}
    workload = columns(
        rows,
        kept,
        **common,
        arrival_ns=arrival,
        prompt=prompt,
        output=output,
        turn=nullable(np.arange(len(rows)), np.zeros(len(rows), bool)),
        blocks=objects(blocks) if blocks else None,
    )
    measured = columns(
        rows,
        **common,
        status=text(["ok"] * len(rows)),
        arrival_ns=pd.array(arrival, "Int64"),
        ttft_s=ttft,
        tpot_s=per_token(ttft, e2e, output),
        e2e_s=e2e,
        prompt=nullable(prompt, prompt == 0),
        output=nullable(output, output == 0),
    )
    return Piece(report, 0, workload, measured, block_size=size if blocks else 0, local_blocks=local)
