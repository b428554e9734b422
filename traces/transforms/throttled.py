"""Throttled requests as demand: those that a gateway refused, with outputs drawn from requests that finished.

A request that was refused for want of capacity (429) was wanted. Its prompt is known, its output is not: it is that
of a request of its tenant that finished, drawn at random. Where the client tried again, both attempts are in a log;
they cannot be told apart, and demand is then too high.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from traces.errors import BadInput
from traces.reading.table import Trace
from traces.synthetic.streams import Stream

if TYPE_CHECKING:
    import pandas as pd

UNSENT = "failed: no lengths"
"""Why readers leave such requests out."""


def with_throttled(trace: Trace, seed: int = 0) -> Trace:
    """The trace with its throttled requests in the workload; the report says how many, and of whose outputs.

    Raises BadInput for a log without status or arrivals, and without a throttled request whose prompt is known.
    """
    import pandas as pd

    frame, measured = trace.workload, trace.measurements
    where = f"{trace.report.file}: replay_throttled"
    if frame is None or frame.empty or measured is None or not {"status", "prompt", "arrival_ns"} <= set(measured):
        raise BadInput(f"{where}: found no status with arrivals and prompts; expected a log that has them")
    refused = measured[(measured["status"] == "throttled") & measured["prompt"].notna()]
    refused = refused[~refused["id"].isin(frame["id"]) & refused["arrival_ns"].notna()]
    if refused.empty:
        raise BadInput(f"{where}: no throttled request with a prompt; expected some")
    added = pd.DataFrame({name: refused[name] for name in frame.columns if name in refused})
    added["output"] = drawn(frame, refused, seed)
    added = added.astype({name: frame[name].dtype for name in ("arrival_ns", "prompt", "output")})
    whole = pd.concat([frame, added.reindex(columns=frame.columns)], ignore_index=True)
    whole = whole.astype(frame.dtypes.to_dict()).sort_values("arrival_ns", kind="stable").reset_index(drop=True)
    report, count = replace(trace.report, changed=Counter(trace.report.changed)), len(added)
    report.kept += count
    if report.dropped[UNSENT] >= count:
        report.dropped = report.dropped - Counter({UNSENT: count})
    report.change("throttled and replayed, with an output drawn from finished requests of their tenant", count)
    return replace(trace, workload=whole, report=report)


def drawn(frame: pd.DataFrame, refused: pd.DataFrame, seed: int) -> list[int]:
    """An output for each refused request: of a finished one of its tenant, or of any where its tenant has none."""
    draws = (Stream(seed, "throttled") / "outputs").generator()
    by_tenant: dict[object, np.ndarray[tuple[int], np.dtype[np.int64]]] = {}
    if "tenant" in frame and "tenant" in refused:
        by_tenant = {name: part.to_numpy(np.int64) for name, part in frame.groupby("tenant")["output"]}
    everyone = frame["output"].to_numpy(np.int64)
    tenants = refused["tenant"] if "tenant" in refused else [None] * len(refused)
    return [int(draws.choice(by_tenant.get(name, everyone))) for name in tenants]
