"""Metrics of a run, taken together in `summary`: pure functions of the event log, in seconds."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from sim.accounting.client_view import ClientView, Injected, injected_requests
from sim.accounting.concurrency import concurrency
from sim.accounting.latencies import Floats, describe, latencies_of, latency_summary, request_latencies, seconds
from sim.accounting.ledger import USEFUL, Pages, fleet_pages, slot_rows
from sim.accounting.objectives import Since, objectives_met
from sim.accounting.prefix_stats import cache
from sim.accounting.rates import by_gaps, over_span
from sim.accounting.requests import FINISHED, INTERRUPTED, LEFT, MOVED, STATUSES, RequestRecords
from sim.log.events import EventLog, Integers, Kind
from sim.log.service_log import ServiceLog
from sim.request import SECOND, Nanoseconds


def status_counts(status: Integers) -> dict[str, int]:
    """How many requests were injected, and what became of them."""
    counts = np.bincount(status, minlength=len(STATUSES))
    return {"injected": len(status)} | dict(zip(STATUSES, counts.tolist()[: len(STATUSES)], strict=True))


def tenant_summary(injected: Injected, latencies: Mapping[str, Floats]) -> dict[str, Any]:
    """Request counts and latencies by tenant, in order of first appearance."""
    codes, names = pd.factorize(np.array([request.tenant for request in injected.requests], dtype=object))
    tenants = {}
    for code, name in enumerate(names):
        chosen = codes == code
        latency = latency_summary(injected, latencies, chosen)
        tenants[str(name)] = {"requests": status_counts(injected.status[chosen])} | latency
    return tenants


def token_counts(records: RequestRecords) -> dict[str, int]:
    """Token positions: prompts of finished requests, tokens delivered, positions computed, and lost tokens."""
    runs = records.log.run_table()
    prompts = np.array([request.prompt for request in records.log.requests], np.int64)
    finished = records.status == FINISHED
    return {
        "prompt": int(prompts[finished].sum()),
        "output": int(records.tokens.sum()),
        "computed": int(runs["tokens"] @ runs["steps"]),
        "recomputed": int(records.value[np.isin(records.kind, (Kind.PREEMPTED, Kind.MOVED))].sum()),
        "cached": int(records.value[records.kind == Kind.ADMITTED].sum()),
        "padding": int(runs["padding"] @ runs["steps"]),
        "lost": int((records.kind == Kind.LOST).sum()),
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


def fingerprint(logs: Sequence[EventLog], service_log: ServiceLog | None = None) -> str:
    """The digest of a log, or of the digests of several, and of what happened between them."""
    if service_log is not None and service_log.eventful:
        return service_log.sha256(logs)
    if len(logs) == 1:
        return logs[0].sha256()
    return hashlib.sha256("".join(f"{log.sha256()}\n" for log in logs).encode()).hexdigest()


def summary(
    logs: EventLog | Sequence[EventLog],
    objectives: Mapping[str, Nanoseconds] | None = None,
    service_log: ServiceLog | None = None,
    since: Since = "wanted",
) -> dict[str, Any]:
    """All metrics of a run as plain numbers, times in seconds; of several replicas, all taken together.

    logs         of one engine, or of each replica in order
    objectives   limits in ns by the keys of OBJECTIVES, counted from `since`: attainment and goodput, None without
    service_log  where requests may be in several logs; then each is counted once, as its client sees it

    docs/output.md describes every key.
    """
    logs = [logs] if isinstance(logs, EventLog) else list(logs)
    fleet = [RequestRecords(log) for log in logs]
    injected = injected_requests(fleet, service_log)
    latencies = request_latencies(injected)
    span = injected.span
    down = [None if service_log is None else injected.down(number) for number in range(len(fleet))]
    rows = [slot_rows(records, span, injected.wasted(n), down[n]) for n, records in enumerate(fleet)]
    slot_steps, slot_time = total(steps for steps, _ in rows), total(time for _, time in rows)
    tokens = total(token_counts(records) for records in fleet)
    counts = status_counts(injected.status)
    met = None
    if objectives:
        met = int(objectives_met(injected.status, latencies, objectives, since).sum())
    begins = int(injected.queued[injected.queued >= 0].min(initial=np.iinfo(np.int64).max)) if span else 0
    return {
        "log_sha256": fingerprint(logs, service_log),
        "steps": sum(log.steps for log in logs),
        "makespan_s": span / SECOND,
        "occupancy": ratio(sum(slot_steps[row] for row in USEFUL), slot_steps["bought"]),
        "preemptions": sum(int(records.preemptions.sum()) for records in fleet),
        "goodput_per_s": None if met is None else ratio(met * SECOND, span),
        "requests": counts,
        "rejections": rejections(injected),
        "slot_steps": slot_steps,
        "slot_seconds": {row: time / SECOND for row, time in slot_time.items()},
        "pages": page_summary(fleet_pages(fleet, injected.begins, span)),
        "tokens": tokens,
        "cache": cache(fleet),
        "tokens_per_slot_step": ratio(tokens["output"], slot_steps["bought"]),
        "attainment": None if met is None else ratio(met, counts["injected"]),
        "objectives_from": None if met is None else since,
        "rates": rates(injected, tokens["output"]),
        "concurrency": concurrency(injected, begins, begins + span),
        **latencies_of(injected, latencies, np.ones(len(injected.status), bool)),
        "tenants": tenant_summary(injected, latencies),
        "service": service_summary(injected) if isinstance(injected, ClientView) else None,
        "replicas": [replica_summary(records, *rows[n], down[n]) for n, records in enumerate(fleet)],
    }


def page_summary(use: Pages) -> dict[str, Any]:
    """The use of the pages of all replicas."""
    return {
        "total": use.total,
        "mean_used": use.mean_used,
        "peak_used": use.peak_used,
        "mean_live_fraction": use.mean_live_fraction,
        "positions": use.positions,
    }


def rates(injected: Injected, output_tokens: int) -> dict[str, float | None]:
    """Requests wanted and finished per second, and tokens delivered per second of the run."""
    finished = injected.status == FINISHED
    return {
        "offered_per_s": over_span(injected.wanted),
        "offered_by_gaps_per_s": by_gaps(injected.wanted),
        "finished_per_s": ratio(int(finished.sum()) * SECOND, injected.span),
        "finished_by_gaps_per_s": by_gaps(injected.finished[finished]),
        "output_tokens_per_s": ratio(output_tokens * SECOND, injected.span),
    }


def service_summary(view: ClientView) -> dict[str, Any]:
    """What happened between clients and replicas: attempts, moves, waits at the router, transfers, outages."""
    retried = view.attempts > 1
    transfers = len(view.service_log.table("transfers"))
    left = np.concatenate([records.status for records in view.fleet])
    return {
        "attempts": int(view.attempts.sum()),
        "retried": int(retried.sum()),
        "most_attempts": int(view.attempts.max(initial=0)),
        "finished_by_retry": int((retried & (view.status == FINISHED)).sum()),
        "moved": int((left == MOVED).sum()) - transfers,
        "interrupted": int((left == INTERRUPTED).sum()),
        "held": len(view.service_log.table("holds")),
        "router_wait_s": describe(seconds(view.time("holds"))),
        "transfers": transfers,
        "transfer_s": describe(seconds(view.time("transfers"))),
        "outages": len(view.service_log.table("outages")),
    }


def replica_summary(
    records: RequestRecords, steps: Mapping[str, int], time: Mapping[str, int], down: Nanoseconds | None
) -> dict[str, Any]:
    """What one replica did: its requests, its steps, and how much of its slots and of the time was used.

    Where requests may move or be lost with a replica (`down` is known), these are counted too.
    """
    left = np.bincount(records.status, minlength=len(STATUSES) + len(LEFT))[len(STATUSES) :].tolist()
    return {
        "slots": records.log.slots,
        "pages": records.log.pages,
        "requests": status_counts(records.status) | ({} if down is None else dict(zip(LEFT, left, strict=True))),
        "steps": records.log.steps,
        "occupancy": ratio(sum(steps[row] for row in USEFUL), steps["bought"]),
        "busy": ratio(time["bought"] - time["idle"] - time.get("down", 0), time["bought"]),
        **({} if down is None else {"down_s": down / SECOND}),
        "preemptions": int(records.preemptions.sum()),
        "output_tokens": int(records.tokens.sum()),
    }
