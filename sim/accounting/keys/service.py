"""What happened between clients and replicas, and what each replica did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from sim.accounting.accounts import Accounts
from sim.accounting.client_view import ClientView
from sim.accounting.keys.latencies import STATISTICS
from sim.accounting.keys.requests import COUNTS
from sim.accounting.latencies import describe, seconds
from sim.accounting.ledger import USEFUL
from sim.accounting.metric import Metric, Value
from sim.accounting.rates import ratio
from sim.accounting.requests import FINISHED, INTERRUPTED, LEFT, MOVED, STATUSES, RequestRecords, status_counts
from sim.request import SECOND, Nanoseconds


def service(accounts: Accounts) -> dict[str, Any] | None:
    """Attempts, moves, waits at the router, transfers, outages; None where a request goes to one replica."""
    view = accounts.injected
    if not isinstance(view, ClientView):
        return None
    retried = view.attempts > 1
    transfers, kept = len(view.service_log.table("transfers")), len(view.service_log.table("kept"))
    left = np.concatenate([records.status for records in view.fleet])
    return {
        "attempts": int(view.attempts.sum()),
        "retried": int(retried.sum()),
        "most_attempts": int(view.attempts.max(initial=0)),
        "finished_by_retry": int((retried & (view.status == FINISHED)).sum()),
        "moved": int((left == MOVED).sum()) - (kept or transfers),
        "interrupted": int((left == INTERRUPTED).sum()),
        "held": len(view.service_log.table("holds")),
        "router_wait_s": describe(seconds(view.time("holds"))),
        "transfers": transfers,
        "transfer_s": describe(seconds(view.time("transfers"))),
        "room_wait_s": describe(seconds(view.time("kept") - view.time("transfers") if kept else view.time("kept"))),
        "outages": len(view.service_log.table("outages")),
    }


def replicas(accounts: Accounts) -> list[dict[str, Any]]:
    """What each replica did."""
    return [
        replica(records, *accounts.ledgers[number], accounts.down[number])
        for number, records in enumerate(accounts.fleet)
    ]


def replica(
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


COUNT = Value("int64", "requests", column=False)

SERVICE = Metric(
    "service",
    "null where each request goes to one replica and ends there. With retries, failures, unequal replicas or "
    "pools: `attempts` in all, first ones included; requests `retried`, and the `most_attempts` of one; "
    "`finished_by_retry`; how often one `moved` on from a failed replica; attempts `interrupted` with their "
    "replica; how often one was `held` at a router because no replica was up, and that wait per request, "
    "`router_wait_s`; `transfers` between pools, and the time per request, `transfer_s`; with "
    "`transfer.pull`, how long KV was kept until the decode pool had a slot and pages, `room_wait_s`; `outages`",
    service,
    {
        "attempts": COUNT,
        "retried": COUNT,
        "most_attempts": COUNT,
        "finished_by_retry": COUNT,
        "moved": COUNT,
        "interrupted": COUNT,
        "held": COUNT,
        "transfers": COUNT,
        "outages": Value("int64", column=False),
        **{
            f"{latency}.{statistic}": replace(value, column=False)
            for latency in ("router_wait_s", "transfer_s", "room_wait_s")
            for statistic, value in STATISTICS.items()
            if statistic != "censored_share"
        },
    },
)
REPLICAS = Metric(
    "replicas",
    "what each replica did: its `slots` and `pages`, its requests, steps, occupancy, `busy` (the share of the "
    "makespan in which a step ran), preemptions, output tokens. All other keys add the replicas up, over one "
    "makespan. Where requests may be in several logs (see `service`) its requests are the entries of its own log, "
    "of which some `moved` on (from a failed replica, or to the pool that decodes) or were `interrupted`, and "
    "`down_s` is how long it was down",
    replicas,
    {
        "[].slots": Value("int64", "slots"),
        "[].pages": Value("int64", "pages"),
        **{f"[].requests.{status}": value for status, value in (COUNTS | dict.fromkeys(LEFT, COUNT)).items()},
        "[].steps": Value("int64", "steps"),
        "[].occupancy": Value(unit="share", better="higher"),
        "[].busy": Value(unit="share"),
        "[].down_s": Value(unit="s", better="lower"),
        "[].preemptions": Value("int64", better="lower"),
        "[].output_tokens": Value("int64", "tokens"),
    },
)
