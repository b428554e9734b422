"""Requests as a Trace, so that generated workloads can be described, fitted and written like those from files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields

import pandas as pd

from sim.request import Patience, Request
from traces.reading.pieces import STRING, objects
from traces.reading.report import Report
from traces.reading.table import Trace

PATIENCE = tuple(each.name for each in fields(Patience))


def tabulate(
    requests: Sequence[Request], sessions: Mapping[str, str] | None = None, file: str = "requests"
) -> tuple[Trace, list[str]]:
    """A trace of these requests in their order, and what it cannot hold, one line each.

    `sessions` gives the session by request id, for requests without one. Arrivals are kept and do not count from the
    first. Blocks of several sizes are left out.
    """
    known = dict(sessions or {}) | {request.id: request.session for request in requests if request.session}
    lost = ["adapter: not in a trace"] if any(each.adapter for each in requests) else []
    limits = {each.patience for each in requests}
    lost += [f"{name}: not in a trace" for name in PATIENCE if any(getattr(each, name) for each in limits)]
    columns: dict[str, object] = {
        "id": pd.array([request.id for request in requests], dtype=STRING),
        "arrival_ns": [request.arrival for request in requests],
        "prompt": [request.prompt for request in requests],
        "output": [request.output for request in requests],
    }
    if any(request.declared for request in requests):
        columns["max_output"] = pd.array([request.declared or None for request in requests], dtype="Int64")
    if any(request.tenant != "default" for request in requests):
        columns["tenant"] = pd.array([request.tenant for request in requests], dtype=STRING)
    if known:
        columns["session"] = pd.array([known.get(request.id) for request in requests], dtype=STRING)
    if any(request.think is not None for request in requests):
        columns["think_ns"] = pd.array([request.think for request in requests], dtype="Int64")
    if any(request.priority for request in requests):
        columns["priority"] = pd.array([request.priority for request in requests], dtype="Int64")
    sizes = {request.block_size for request in requests if request.blocks}
    if len(sizes) == 1:
        columns["blocks"] = objects(request.blocks for request in requests)
    elif sizes:
        lost.append(f"blocks of {len(sizes)} sizes: a trace has one")
    if any(request.tokens is not None for request in requests):
        columns["tokens"] = objects(request.tokens for request in requests)
    report = Report(file, format="requests", rows=len(requests), kept=len(requests))
    frame = pd.DataFrame(columns)
    return Trace("workload", report, frame, block_size=sizes.pop() if len(sizes) == 1 else 0), lost
