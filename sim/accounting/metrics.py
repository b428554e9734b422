"""Metrics of a run, taken together in `summary`: pure functions of the event log, in seconds.

A new one is its file in `sim.accounting.keys` and a line in METRICS.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sim.accounting.accounts import Accounts
from sim.accounting.metric import Metric
from sim.accounting.objectives import Since
from sim.log.events import EventLog
from sim.log.service_log import ServiceLog
from sim.registry import Registry
from sim.request import Nanoseconds


def entry(name: str, found: Any) -> Metric:
    """The metric that an object is. Raises ValueError for anything else."""
    if not isinstance(found, Metric):
        raise ValueError(f"{name!r} is {found!r}; expected a sim.accounting.metric.Metric")
    return found


METRICS: Registry[Metric] = Registry(
    "metric",
    "slotstep.metrics",
    {
        "log_sha256": "sim.accounting.keys.run:LOG_SHA256",
        "steps": "sim.accounting.keys.run:STEPS",
        "makespan_s": "sim.accounting.keys.run:MAKESPAN",
        "occupancy": "sim.accounting.keys.run:OCCUPANCY",
        "preemptions": "sim.accounting.keys.run:PREEMPTIONS",
        "goodput_per_s": "sim.accounting.keys.objectives:GOODPUT",
        "requests": "sim.accounting.keys.requests:REQUESTS",
        "rejections": "sim.accounting.keys.requests:REJECTIONS",
        "slot_steps": "sim.accounting.keys.ledger:SLOT_STEPS",
        "slot_seconds": "sim.accounting.keys.ledger:SLOT_SECONDS",
        "pages": "sim.accounting.keys.memory:PAGES",
        "tokens": "sim.accounting.keys.tokens:TOKENS",
        "cache": "sim.accounting.keys.memory:CACHE",
        "speculation": "sim.accounting.keys.speculation:SPECULATION",
        "tokens_per_slot_step": "sim.accounting.keys.run:TOKENS_PER_SLOT_STEP",
        "attainment": "sim.accounting.keys.objectives:ATTAINMENT",
        "objectives_from": "sim.accounting.keys.objectives:OBJECTIVES_FROM",
        "rates": "sim.accounting.keys.rates:RATES",
        "concurrency": "sim.accounting.keys.rates:CONCURRENCY",
        "wait_s": "sim.accounting.keys.latencies:WAIT",
        "ttft_s": "sim.accounting.keys.latencies:TTFT",
        "tpot_s": "sim.accounting.keys.latencies:TPOT",
        "itl_s": "sim.accounting.keys.latencies:ITL",
        "e2e_s": "sim.accounting.keys.latencies:E2E",
        "client_ttft_s": "sim.accounting.keys.latencies:CLIENT_TTFT",
        "client_e2e_s": "sim.accounting.keys.latencies:CLIENT_E2E",
        "max_itl_s": "sim.accounting.keys.latencies:MAX_ITL",
        "client_wait_s": "sim.accounting.keys.latencies:CLIENT_WAIT",
        "tenants": "sim.accounting.keys.requests:TENANTS",
        "service": "sim.accounting.keys.service:SERVICE",
        "pools": "sim.accounting.keys.pools:POOLS",
        "replicas": "sim.accounting.keys.service:REPLICAS",
    },
    entry,
)


OF_THE_SCENARIO = (
    *("scenario", "policy", "predictor", "seed", "preset", "profile", "profiles", "remarks", "metrics"),
    *("engine", "headroom", "kernel", "measured", "queue_grows", "sessions"),
)
"""Keys of a summary that are no metrics of the log, and are not those of a metric."""


def summary(
    logs: EventLog | Sequence[EventLog],
    objectives: Mapping[str, Nanoseconds] | None = None,
    service_log: ServiceLog | None = None,
    since: Since = "wanted",
    more: Iterable[str] = (),
) -> dict[str, Any]:
    """All metrics of a run as plain numbers, times in seconds; of several replicas, all taken together.

    logs         of one engine, or of each replica in order
    objectives   limits in ns by the keys of OBJECTIVES, counted from `since`: attainment and goodput, None without
    service_log  where requests may be in several logs; then each is counted once, as its client sees it
    more         names of further metrics, `module:object` or those of installed packages

    docs/reference-metrics.md describes every key. Raises ValueError as `chosen`.
    """
    accounts = Accounts([logs] if isinstance(logs, EventLog) else list(logs), objectives, service_log, since)
    return {metric.key: metric.of(accounts) for metric in chosen(more)}


def chosen(more: Iterable[str] = ()) -> list[Metric]:
    """The built-in metrics, and further ones by name. Raises ValueError for an unknown one or a key used twice."""
    metrics = {metric.key: metric for metric in METRICS.values()}
    for name in more:
        found = METRICS.find(name)
        if found.key in metrics or found.key in OF_THE_SCENARIO:
            raise ValueError(f"{name!r} has the key {found.key!r}, which is taken; expected a new one")
        metrics[found.key] = found
    return list(metrics.values())


def schema() -> dict[str, Any]:
    """The JSON schema of the built-in metrics in a summary."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The metrics in the summary of a run",
        "type": "object",
        "properties": {metric.key: metric.schema for metric in METRICS.values()},
        "required": [metric.key for metric in METRICS.values()],
    }
