"""Descriptive statistics of a trace: arrivals, lengths, tenants, sessions, prefix sharing, and anomalies.

The result holds only values that JSON can hold; a part is absent where the file has no data for it.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd

from sim.request import SECOND
from traces.describe import statistics
from traces.describe.prefix_sharing import Prompt, chained, prefix_hits
from traces.reading.table import Trace

TOKEN_BLOCK = 16
MOST_TENANTS = 10
PILE = 0.01
COARSE = 0.1
FAR_OUT = 10


def describe(trace: Trace) -> dict[str, Any]:
    """The description of a whole trace; of one run: `describe(trace.run(name))`.

    Arrivals of several runs in one file count from each run's first, so they are described only run by run.
    """
    report = trace.report
    found: dict[str, Any] = {
        "file": report.file,
        "format": report.format,
        "kind": trace.kind,
        "reading": {
            "rows": report.rows,
            "kept": report.kept,
            "changed": dict(report.changed),
            "dropped": dict(report.dropped),
            "notes": list(report.notes),
            "warnings": list(report.warnings),
        },
    }
    if trace.runs:
        found["runs"] = trace.runs
    if trace.workload is not None and len(trace.workload):
        found |= workload(trace.workload, trace.block_size, trace.local_blocks, timed=len(trace.runs) < 2)
    if trace.measurements is not None:
        found["measurements"] = measurements(trace.measurements)
    if trace.tables:
        found["tables"] = {name: len(table) for name, table in trace.tables.items()}
    return found


def workload(frame: pd.DataFrame, block_size: int, local: bool, timed: bool = True) -> dict[str, Any]:
    """The description of a workload frame; `timed`: describe arrivals and prefix sharing too."""
    found: dict[str, Any] = {"rows": len(frame)}
    times = frame["arrival_ns"].to_numpy(np.int64) if timed and "arrival_ns" in frame else None
    if times is not None:
        found["span_s"] = int(times[-1] - times[0]) / SECOND
        found["arrivals"] = statistics.arrivals(times)
    for name in ("prompt", "output"):
        if name in frame:
            found[name] = statistics.lengths(frame[name].to_numpy(np.int64))
    if "output" in frame:
        pair = (frame[name].to_numpy(np.int64) for name in ("prompt", "output"))
        found["rank_correlation"] = statistics.rank_correlation(*pair)
    if "tenant" in frame and frame["tenant"].notna().any():
        found["tenants"] = tenants(frame)
    if "session" in frame and frame["session"].notna().any():
        turns = frame["session"].value_counts()
        found["sessions"] = {"count": len(turns), "turns_mean": float(turns.mean()), "turns_max": int(turns.max())}
    content = prompts(frame, block_size, local) if times is not None else None
    if content is not None:
        found["reuse"] = prefix_hits(*content)
    return found | {"anomalies": anomalies(frame, found)}


def prompts(frame: pd.DataFrame, block_size: int, local: bool) -> tuple[list[Prompt], int] | None:
    """Each prompt as (block ids, tokens), and the block size; None if the frame has no content of prompts."""
    lengths = frame["prompt"].tolist()
    if "blocks" in frame:
        names: list[list[Hashable]] = [list(blocks) for blocks in frame["blocks"]]
        if local:
            names = [[(s, name) for name in row] for s, row in zip(frame["session"], names, strict=True)]
        return list(zip(names, lengths, strict=True)), block_size
    if "tokens" in frame:
        return [(chained(t, TOKEN_BLOCK), n) for t, n in zip(frame["tokens"], lengths, strict=True)], TOKEN_BLOCK
    return None


def tenants(frame: pd.DataFrame) -> dict[str, Any]:
    """The number of tenants, and for the largest ones requests, share of requests and mean lengths."""
    groups = frame.groupby(frame["tenant"].fillna("default").astype(str), sort=False)
    counts = groups.size().sort_values(ascending=False, kind="stable")
    means = {name: groups[name].mean() for name in ("prompt", "output") if name in frame}
    return {
        "count": len(counts),
        "largest": [
            {
                "tenant": str(tenant),
                "requests": int(counts[tenant]),
                "share": float(counts[tenant] / len(frame)),
                **{f"{name}_mean": float(mean[tenant]) for name, mean in means.items()},
            }
            for tenant in counts.index[:MOST_TENANTS]
        ],
    }


def measurements(frame: pd.DataFrame) -> dict[str, Any]:
    """Rows by status, and mean and percentiles of each measured time, in seconds."""
    found: dict[str, Any] = {"rows": len(frame)}
    if "status" in frame:
        found["status"] = {str(name): int(count) for name, count in frame["status"].value_counts().items()}
    for name in ("wait_s", "ttft_s", "tpot_s", "e2e_s"):
        values = frame[name].dropna().to_numpy(np.float64) if name in frame else np.empty(0)
        if len(values):
            p50, p99 = np.percentile(values, [50, 99])
            found[name] = {"n": len(values), "mean": float(values.mean()), "p50": float(p50), "p99": float(p99)}
    return found


def anomalies(frame: pd.DataFrame, found: dict[str, Any]) -> list[str]:
    """Anomalies, one line each."""
    lines = []
    times = found.get("arrivals")
    if times and times["tick_s"]:
        exactly = "on multiples of" if times["tick_exact"] else "in groups about every"
        coarse = times["tick_s"] * times["rate"] > COARSE
        why = ": the CV of the gaps is an artefact of the clock" if coarse else ""
        lines.append(f"arrivals come {exactly} {times['tick_s']:g} s{why}")
    elif times and times["ties"]:
        lines.append(f"{times['ties']:,} requests arrive at the same instant as the one before")
    if times and found["span_s"] and times["longest_gap_s"] > 0.02 * found["span_s"] and found["rows"] > 1000:
        share = times["longest_gap_s"] / found["span_s"]
        lines.append(f"no request for {times['longest_gap_s']:.0f} s: {share:.1%} of the time")
    for name in ("prompt", "output"):
        if name in found:
            lines += odd_lengths(name, frame[name].to_numpy(np.int64), found[name])
    return lines


def odd_lengths(name: str, values: statistics.Integers, found: dict[str, Any]) -> list[str]:
    """Anomalies of lengths: all equal, many at a cap, or an outlier."""
    top = found["max"]
    if found["min"] == top:
        return [f"every {name} is {top:,} token{'s' * (top > 1)} long"]
    near = int((values >= top - max(1, top // 1000)).sum())
    if near > PILE * len(values):
        return [f"{near:,} {name}s ({near / len(values):.1%}) are at or just below the longest, {top:,}: a cap"]
    if len(values) > 1000 and top > FAR_OUT * found["p99.9"]:
        return [f"the longest {name}, {top:,} tokens, is {top / found['p99.9']:.0f} times the 99.9th percentile"]
    return []
