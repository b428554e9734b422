"""Figures of a run: pure functions of the event log. Floats and seconds appear here and nowhere before."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sim.accounting.client_view import Injected, Journeys
from sim.accounting.concurrency import concurrency
from sim.accounting.ledger import USEFUL, fleet_pages, slot_rows
from sim.accounting.objectives import Since, objectives_met
from sim.accounting.prefix_stats import cache
from sim.accounting.rates import by_gaps, over_span
from sim.accounting.requests import FINISHED, INTERRUPTED, LEFT, MOVED, NEVER, STATUSES, Bools, Lives
from sim.log.events import EventLog, Integers, Kind
from sim.log.service_log import Trail
from sim.request import SECOND, Nanoseconds

Floats = NDArray[np.float64]

PERCENTILES = (50, 90, 95, 99)
LATENCIES = ("wait_s", "ttft_s", "tpot_s", "itl_s", "e2e_s", "client_ttft_s", "client_e2e_s")


Statistics = dict[str, float | int | None]


def describe(values: Floats, weights: Integers | None = None) -> Statistics:
    """{n, mean, p50, p90, p95, p99, max} of the values that are not NaN, each counted `weights` times.

    Percentiles interpolate linearly between order statistics. Without samples: n is 0, the rest None.
    """
    keep = ~np.isnan(values)
    values = values[keep]
    counts = np.ones(len(values), np.int64) if weights is None else weights[keep]
    total = int(counts.sum())
    if not total:
        return {"n": 0} | dict.fromkeys(("mean", *(f"p{p}" for p in PERCENTILES), "max"))
    order = np.argsort(values, kind="stable")
    values, reach = values[order], np.cumsum(counts[order])
    mean = float(np.sum(values * counts[order])) / total
    spots = np.array(PERCENTILES) / 100 * (total - 1)
    below = np.floor(spots).astype(np.int64)
    low = values[np.searchsorted(reach, below, side="right")]
    high = values[np.searchsorted(reach, np.minimum(below + 1, total - 1), side="right")]
    found = low + (high - low) * (spots - below)
    largest = float(values[np.flatnonzero(counts[order])[-1]])
    quantiles = {f"p{p}": float(value) for p, value in zip(PERCENTILES, found, strict=True)}
    return {"n": total, "mean": mean, **quantiles, "max": largest}


def seconds(nanoseconds: Integers) -> Floats:
    """Nanoseconds as seconds, NaN where there are none."""
    result: Floats = np.where(nanoseconds < 0, np.nan, nanoseconds / SECOND)
    return result


def between(start: Integers, end: Integers) -> Integers:
    """The time from start to end, NEVER where either is missing."""
    return np.where((start < 0) | (end < 0), NEVER, end - start)


def request_latencies(lives: Lives | Injected) -> dict[str, Floats]:
    """Seconds for each request: wait, TTFT, TPOT, E2E and its largest gap; NaN where undefined.

    Those that begin with `client` count from when its client wanted to send it, the others from when it was sent.
    """
    decode_time = between(lives.first_token, lives.finished)
    several = lives.tokens > 1
    tpot = np.where(several, seconds(decode_time) / np.maximum(lives.tokens - 1, 1), np.nan)
    return {
        "wait_s": seconds(between(lives.queued, lives.admitted)),
        "ttft_s": seconds(between(lives.queued, lives.first_token)),
        "tpot_s": tpot,
        "e2e_s": seconds(between(lives.queued, lives.finished)),
        "max_itl_s": seconds(lives.largest_gap),
        "client_admission_s": seconds(between(lives.wanted, lives.admitted)),
        "client_ttft_s": seconds(between(lives.wanted, lives.first_token)),
        "client_e2e_s": seconds(between(lives.wanted, lives.finished)),
    }


def status_counts(status: Integers) -> dict[str, int]:
    """How many requests were injected, and what became of them."""
    counts = np.bincount(status, minlength=len(STATUSES))
    return {"injected": len(status)} | dict(zip(STATUSES, counts.tolist()[: len(STATUSES)], strict=True))


def with_censored(described: Statistics, has_none: Bools) -> Statistics:
    """The same with the share of requests (of all injected) that have no such latency because of how they ended."""
    share = float(has_none.mean()) if len(has_none) else 0.0
    return {"n": described["n"], "censored_share": share} | described


def censored(values: Floats, status: Integers) -> Bools:
    """Who did not finish and has no such latency: rejected, given up, or not so far when the run ended."""
    found: Bools = (status != FINISHED) & np.isnan(values)
    return found


def gaps(injected: Injected, chosen: Bools) -> Statistics:
    """Gaps between consecutive tokens, pooled over the chosen of all requests."""
    return describe(*pooled_gaps(injected, chosen))


def pooled_gaps(injected: Injected, chosen: Bools | None = None) -> tuple[Floats, Integers]:
    """Gaps between consecutive tokens in seconds, and how many of each; of all requests or of the chosen."""
    if chosen is None:
        chosen = np.ones(len(injected.status), bool)
    between_legs = injected.pauses_between_legs(chosen)
    values, weights = [between_legs], [np.ones(len(between_legs), np.int64)]
    for lives, mine in zip(injected.fleet, injected.entries(chosen), strict=True):
        request, pauses = lives.pauses
        pauses = pauses[mine[request]]
        values += [lives.token_distances, pauses]
        weights += [lives.decoders_by_step(mine), np.ones(len(pauses), np.int64)]
    return np.concatenate(values) / SECOND, np.concatenate(weights)


def latency_summary(injected: Injected, latencies: Mapping[str, Floats], chosen: Bools) -> dict[str, Any]:
    """Each of LATENCIES described over the chosen requests; for gaps, who did not finish is censored."""
    status = injected.status[chosen]
    described = {
        name: with_censored(describe(values[chosen]), censored(values[chosen], status))
        for name, values in latencies.items()
    }
    described["itl_s"] = with_censored(gaps(injected, chosen), status != FINISHED)
    return {name: described[name] for name in LATENCIES}


def latencies_of(injected: Injected, latencies: Mapping[str, Floats], chosen: Bools) -> dict[str, Any]:
    """The same, with the largest gap of each of the chosen requests and its wait at the client."""
    status = injected.status[chosen]
    more = {"max_itl_s": latencies["max_itl_s"][chosen], "client_wait_s": seconds(injected.client_wait)[chosen]}
    return latency_summary(injected, latencies, chosen) | {
        name: with_censored(describe(values), censored(values, status)) for name, values in more.items()
    }


def tenant_summary(injected: Injected, latencies: Mapping[str, Floats]) -> dict[str, Any]:
    """Request counts and latencies by tenant, in order of first appearance."""
    codes, names = pd.factorize(np.array([request.tenant for request in injected.requests], dtype=object))
    tenants = {}
    for code, name in enumerate(names):
        chosen = codes == code
        latency = latency_summary(injected, latencies, chosen)
        tenants[str(name)] = {"requests": status_counts(injected.status[chosen])} | latency
    return tenants


def token_counts(lives: Lives) -> dict[str, int]:
    """Token positions: prompts of finished requests, tokens delivered, positions computed, and what was in vain."""
    runs = lives.log.run_table()
    prompts = np.array([request.prompt for request in lives.log.requests], np.int64)
    finished = lives.status == FINISHED
    return {
        "prompt": int(prompts[finished].sum()),
        "output": int(lives.tokens.sum()),
        "computed": int(runs["tokens"] @ runs["steps"]),
        "recomputed": int(lives.value[np.isin(lives.kind, (Kind.PREEMPTED, Kind.MOVED))].sum()),
        "cached": int(lives.value[lives.kind == Kind.ADMITTED].sum()),
        "padding": int(runs["padding"] @ runs["steps"]),
        "lost": int((lives.kind == Kind.LOST).sum()),
    }


def rejections(injected: Injected) -> dict[str, int]:
    """How many requests were rejected, by reason, in order of first appearance."""
    return dict(Counter(reason for reason in injected.reasons if reason))


def total(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Counts of the same name added up, in order of first appearance."""
    added: dict[str, int] = {}
    for part in parts:
        for name, count in part.items():
            added[name] = added.get(name, 0) + count
    return added


def ratio(part: float, whole: float) -> float | None:
    """part / whole, None when there is no whole."""
    return part / whole if whole else None


def fingerprint(logs: Sequence[EventLog], trail: Trail | None = None) -> str:
    """The digest of a log, or of the digests of several, and of what happened between them."""
    if trail is not None and trail.eventful:
        return trail.sha256(logs)
    if len(logs) == 1:
        return logs[0].sha256()
    return hashlib.sha256("".join(f"{log.sha256()}\n" for log in logs).encode()).hexdigest()


def asked(fleet: Sequence[Lives], trail: Trail | None) -> Injected:
    """All requests of a run, as their clients see them."""
    return Injected(fleet) if trail is None else Journeys(fleet, trail)


def summary(
    logs: EventLog | Sequence[EventLog],
    objectives: Mapping[str, Nanoseconds] | None = None,
    trail: Trail | None = None,
    since: Since = "wanted",
) -> dict[str, Any]:
    """Everything a run is judged by, as plain numbers; times in seconds. Of several replicas: all taken together.

    `objectives` (keys of OBJECTIVES, nanoseconds), counted from `since`, decide attainment and goodput, None without.
    With a `trail`, requests are journeys, which may be in several logs.
    """
    logs = [logs] if isinstance(logs, EventLog) else list(logs)
    fleet = [Lives(log) for log in logs]
    injected = asked(fleet, trail)
    status = injected.status
    latencies = request_latencies(injected)
    span = injected.span
    down = [None if trail is None else injected.down(number) for number in range(len(fleet))]
    rows = [slot_rows(lives, span, injected.in_vain(n), down[n]) for n, lives in enumerate(fleet)]
    slot_steps, slot_time = total(steps for steps, _ in rows), total(time for _, time in rows)
    use = fleet_pages(fleet, injected.begins, span)
    tokens = total(token_counts(lives) for lives in fleet)
    met = int(objectives_met(status, latencies, objectives, since).sum()) if objectives else None
    counts = status_counts(status)
    begins = int(injected.queued[injected.queued >= 0].min(initial=np.iinfo(np.int64).max)) if span else 0
    return {
        "log_sha256": fingerprint(logs, trail),
        "steps": sum(log.steps for log in logs),
        "makespan_s": span / SECOND,
        "occupancy": ratio(sum(slot_steps[row] for row in USEFUL), slot_steps["bought"]),
        "preemptions": sum(int(lives.preemptions.sum()) for lives in fleet),
        "goodput_per_s": None if met is None else ratio(met * SECOND, span),
        "requests": counts,
        "rejections": rejections(injected),
        "slot_steps": slot_steps,
        "slot_seconds": {row: time / SECOND for row, time in slot_time.items()},
        "pages": {
            "total": use.total,
            "mean_used": use.mean_used,
            "peak_used": use.peak_used,
            "mean_live_fraction": use.mean_live_fraction,
            "positions": use.positions,
        },
        "tokens": tokens,
        "cache": cache(fleet),
        "tokens_per_slot_step": ratio(tokens["output"], slot_steps["bought"]),
        "attainment": None if met is None else ratio(met, counts["injected"]),
        "objectives_from": None if met is None else since,
        "rates": {
            "offered_per_s": over_span(injected.wanted),
            "offered_by_gaps_per_s": by_gaps(injected.wanted),
            "finished_per_s": ratio(counts["finished"] * SECOND, span),
            "finished_by_gaps_per_s": by_gaps(injected.finished[status == FINISHED]),
            "output_tokens_per_s": ratio(tokens["output"] * SECOND, span),
        },
        "concurrency": concurrency(injected, begins, begins + span),
        **latencies_of(injected, latencies, np.ones(len(status), bool)),
        "tenants": tenant_summary(injected, latencies),
        "service": service_summary(injected) if isinstance(injected, Journeys) else None,
        "replicas": [replica_summary(lives, *rows[n], down[n]) for n, lives in enumerate(fleet)],
    }


def service_summary(journeys: Journeys) -> dict[str, Any]:
    """What happened between clients and replicas: attempts, moves, waits at the router, transfers, outages."""
    retried = journeys.attempts > 1
    transfers = len(journeys.trail.table("transfers"))
    left = np.concatenate([lives.status for lives in journeys.fleet])
    return {
        "attempts": int(journeys.attempts.sum()),
        "retried": int(retried.sum()),
        "most_attempts": int(journeys.attempts.max(initial=0)),
        "finished_by_retry": int((retried & (journeys.status == FINISHED)).sum()),
        "moved": int((left == MOVED).sum()) - transfers,
        "interrupted": int((left == INTERRUPTED).sum()),
        "held": len(journeys.trail.table("holds")),
        "router_wait_s": describe(seconds(journeys.time("holds"))),
        "transfers": transfers,
        "transfer_s": describe(seconds(journeys.time("transfers"))),
        "outages": len(journeys.trail.table("outages")),
    }


def replica_summary(
    lives: Lives, steps: Mapping[str, int], time: Mapping[str, int], down: Nanoseconds | None
) -> dict[str, Any]:
    """What one replica did: its requests, its steps, and how much of its slots and of the time was used.

    Where requests may move or be lost with a replica (`down` is known), these are counted too.
    """
    left = np.bincount(lives.status, minlength=len(STATUSES) + len(LEFT))[len(STATUSES) :].tolist()
    return {
        "slots": lives.log.slots,
        "pages": lives.log.pages,
        "requests": status_counts(lives.status) | ({} if down is None else dict(zip(LEFT, left, strict=True))),
        "steps": lives.log.steps,
        "occupancy": ratio(sum(steps[row] for row in USEFUL), steps["bought"]),
        "busy": ratio(time["bought"] - time["idle"] - time.get("down", 0), time["bought"]),
        **({} if down is None else {"down_s": down / SECOND}),
        "preemptions": int(lives.preemptions.sum()),
        "output_tokens": int(lives.tokens.sum()),
    }
