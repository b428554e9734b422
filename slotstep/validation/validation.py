"""Measured and simulated runs as frames of one form, compared by `calibrate.validate.compare`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from calibrate.fit.measured_run import STATISTICS
from calibrate.validate import compare
from sim.accounting.client_view import injected_requests
from sim.accounting.latencies import describe, gap_statistics
from sim.accounting.requests import RequestRecords

if TYPE_CHECKING:
    from slotstep.runs.result import Result
    from slotstep.validation.measured_runs import Run

LATENCIES = ("ttft_s", "tpot_s", "e2e_s", "wait_s")


@dataclass(frozen=True)
class ComparedRun:
    """A run compared with its prediction: `pairs` and `series` of `calibrate.validate.compare`, and all as plain
    values.
    """

    name: str
    pairs: pd.DataFrame
    series: pd.DataFrame
    content: dict[str, Any]


def compared_run(run: Run) -> ComparedRun:
    """The simulation of a run compared with its measurements."""
    result = run.result()
    measured, predicted = as_measured(run), as_predicted(run, result)
    pairs = compare.both(measured, predicted)
    counts = run.frame["status"].value_counts(sort=False).to_dict()
    gaps = gaps_between(run, pairs["id"])
    content = {
        "run": run.name,
        "profile": result.summary["profile"],
        "log_sha256": result.summary["log_sha256"],
        "prompts": run.prompts,
        "requests": {
            **compare.outcomes({str(k): int(v) for k, v in counts.items()}, result.summary["requests"], len(pairs)),
            "not_replayed": int((~run.frame["replayed"]).sum()),
        },
        "metrics": compare.errors(pairs) | ({"itl_s": itl(run, result, gaps["tokens"])} if gaps["tokens"] else {}),
        "gaps_between": {what: len(names) for what, names in gaps.items()},
        **compare.throughput(measured, predicted),
        "by_load": compare.by_load(pairs),
    }
    return ComparedRun(run.name, pairs, compare.series(measured, predicted), content)


def as_measured(run: Run) -> pd.DataFrame:
    """The measurements of the replayed requests in the columns of `calibrate.validate.compare`."""
    frame = run.frame[run.frame["replayed"]].sort_values("rank", kind="stable")
    well = (frame["status"] == "ok") & frame["e2e_s"].notna()
    known = {name: frame[name] for name in LATENCIES if name in frame}
    first = frame["ttft_s"] if "ttft_s" in frame else pd.Series(np.nan, index=frame.index)
    return pd.DataFrame(
        {
            "id": frame["id"],
            "sent_s": frame["sent_s"],
            "first_s": frame["sent_s"] + first,
            "end_s": frame["sent_s"] + frame["e2e_s"],
            "well": well,
            "output": frame["output"],
            **known,
        }
    )


def as_predicted(run: Run, result: Result) -> pd.DataFrame:
    """The simulated requests in the same columns, latencies as a client would measure them."""
    frame = result.requests
    away = run.delay / 1e9 if run.at_client else 0.0
    sent = frame["queued_ns"].to_numpy(np.float64, na_value=np.nan) / 1e9 - away
    return pd.DataFrame(
        {
            "id": frame["id"],
            "sent_s": sent,
            "first_s": frame["first_token_ns"].to_numpy(np.float64, na_value=np.nan) / 1e9,
            "end_s": frame["ended_ns"].to_numpy(np.float64, na_value=np.nan) / 1e9,
            "well": (frame["status"] == "finished").to_numpy(),
            "ttft_s": frame["ttft_s"] + away,
            "tpot_s": frame["tpot_s"],
            "e2e_s": frame["e2e_s"] + away,
            "wait_s": frame["wait_s"],
        }
    )


def gaps_between(run: Run, ids: pd.Series[str]) -> dict[str, list[str]]:
    """Of these requests, those with a gap for each token (`tokens`), and those with fewer gaps (`chunks`).

    A client that gets several tokens at once has fewer gaps than tokens after the first.
    """
    frame = run.frame[run.frame["id"].isin(ids)]
    found: dict[str, list[str]] = {"tokens": [], "chunks": []}
    if "itl_s" not in frame:
        return found
    for name, output, gaps in zip(frame["id"], frame["output"], frame["itl_s"], strict=True):
        if gaps is not None and len(gaps):
            found["tokens" if len(gaps) == output - 1 else "chunks"].append(str(name))
    return found


def itl(run: Run, result: Result, ids: Sequence[str]) -> dict[str, Any]:
    """The pooled inter-token latencies of these requests, measured and simulated."""
    chosen = set(ids)
    known = run.frame.loc[run.frame["id"].isin(chosen), "itl_s"]
    injected = injected_requests([RequestRecords(log) for log in result.logs], result.service_log)
    same = np.array([request.id in chosen for request in injected.requests], bool)
    pooled, said = describe(np.concatenate(known.tolist())), gap_statistics(injected, same)
    found: dict[str, Any] = {"n": pooled["n"]}
    for name in STATISTICS:
        found[name] = compare.compare(float(pooled[name] or 0), float(said[name] or 0))
    return found
