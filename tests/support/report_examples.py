"""Hand-made runs in the documented shapes, with numbers small enough to check in one's head."""

from __future__ import annotations

from typing import Any

import pandas as pd

MS = 1_000_000
OUTPUTS = dict(zip("abcdefgh", (5, 8, 6, 120, 7, 9, 6, 11), strict=True))


def latency(mean: float | None, p99: float | None = None, n: int = 100) -> dict[str, Any]:
    """A latency whose p50, p90 and p95 are its mean and whose maximum is its p99."""
    if mean is None:
        return {"n": 0, "censored_share": 0.0, **dict.fromkeys(("mean", "p50", "p90", "p95", "p99", "max"))}
    top = mean if p99 is None else p99
    return {
        "n": n,
        "censored_share": 0.0,
        "mean": mean,
        "p50": mean,
        "p90": mean,
        "p95": mean,
        "p99": top,
        "max": top,
    }


def counts(injected: int, **ends: int) -> dict[str, int]:
    """Requests of which those without another end have finished."""
    zero = dict.fromkeys(("rejected", "timed_out", "cancelled", "waiting", "running"), 0)
    return {"injected": injected, "finished": injected - sum(ends.values()), **zero, **ends}


def account(**rows: float) -> dict[str, float]:
    """A ledger account in which what was bought is the sum of the rows."""
    names = [
        "decode",
        "prefill",
        "recomputed",
        "wasted",
        "held",
        "no_demand",
        "no_memory",
        "no_budget",
        "blocked",
        "limited",
    ]
    return {"bought": sum(rows.values()), **dict.fromkeys(names, 0), **rows}


def tenant(injected: int, ttft: float | None) -> dict[str, Any]:
    """A tenant all of whose latencies are the same."""
    names = ("wait_s", "ttft_s", "tpot_s", "itl_s", "e2e_s")
    return {"requests": counts(injected), **{name: latency(ttft) for name in names}}


def a_run(policy: str = "fcfs", **changes: Any) -> dict[str, Any]:
    """The summary of the eight outputs in eight slots under static batching, with what is changed."""
    run = {
        "scenario": "eight",
        "policy": policy,
        "seed": 7,
        "log_sha256": "0123456789ab" + "f" * 52,
        "steps": 120,
        "makespan_s": 0.12,
        "occupancy": 172 / 960,
        "preemptions": 0,
        "goodput_per_s": None,
        "requests": counts(8),
        "rejections": {},
        "slot_steps": account(decode=164, prefill=8, held=788),
        "slot_seconds": account(decode=0.164, prefill=0.008, held=0.788, idle=0.0),
        "pages": {
            "total": 64,
            "mean_used": 15.0,
            "peak_used": 15,
            "mean_live_fraction": 0.5,
            "positions": {"live": 120, "tail": 120, "reserved": 0, "cached": 0, "free": 784},
        },
        "tokens": {
            "prompt": 8,
            "output": 172,
            "computed": 172,
            "recomputed": 0,
            "cached": 0,
            "rejected": 0,
            "padding": 0,
            "lost": 0,
        },
        "tokens_per_slot_step": 172 / 960,
        "attainment": None,
        "rates": {
            "offered_per_s": None,
            "offered_by_gaps_per_s": None,
            "finished_per_s": 66.7,
            "finished_by_gaps_per_s": 60.9,
            "output_tokens_per_s": 1433.0,
        },
        "concurrency": {"in_flight_peak": 8, "in_flight_mean": 1.4, "running_peak": 8, "running_mean": 1.4},
        "measured": None,
        "wait_s": latency(0.0, n=8),
        "ttft_s": latency(0.001, n=8),
        "tpot_s": latency(0.001, n=8),
        "itl_s": latency(0.001, n=164),
        "max_itl_s": latency(0.001, n=8),
        "client_wait_s": latency(0.0, n=8),
        "e2e_s": latency(0.0215, 0.12, n=8),
        "tenants": {"default": tenant(8, 0.001)},
        "replicas": [],
        "queue_grows": None,
    }
    return run | changes


def static_stays() -> pd.DataFrame:
    """The eight outputs in eight slots at 1 ms a step: all enter at 0 and all slots are free at 120 ms."""
    return stays([(slot, name, "finished", 0, n * MS, 120 * MS) for slot, (name, n) in enumerate(OUTPUTS.items())])


def stays(rows: list[tuple[int, str, str, int, int | None, int | None]]) -> pd.DataFrame:
    """Stays from (slot, id, status, admitted, completed, released), times in nanoseconds."""
    frame = pd.DataFrame(rows, columns=["slot", "id", "status", "admitted_ns", "completed_ns", "released_ns"]).assign(
        tenant="default"
    )
    times = ["admitted_ns", "completed_ns", "released_ns"]
    return frame.assign(first_token_ns=frame["admitted_ns"]).astype(
        {"slot": "int64", **dict.fromkeys([*times, "first_token_ns"], "Int64")}
    )
