"""What became of the requests: of all, of those rejected, and of each tenant."""

from __future__ import annotations

from collections import Counter
from operator import attrgetter
from typing import Any

import numpy as np

from sim.accounting.accounts import Accounts
from sim.accounting.keys.latencies import STATISTICS
from sim.accounting.latencies import LATENCIES, latency_summary
from sim.accounting.metric import Better, Metric, Value
from sim.accounting.requests import STATUSES, status_counts

BETTER: dict[str, Better] = {
    "finished": "higher",
    **dict.fromkeys(("rejected", "timed_out", "cancelled", "waiting"), "lower"),
}
COUNTS = {status: Value("int64", "requests", better=BETTER.get(status, "")) for status in ("injected", *STATUSES)}


def rejections(accounts: Accounts) -> dict[str, int]:
    """How many requests were rejected, by reason, in order of first appearance."""
    return dict(Counter(reason for reason in accounts.injected.reasons if reason))


def tenants(accounts: Accounts) -> dict[str, Any]:
    """Request counts and latencies by tenant, in order of first appearance."""
    injected = accounts.injected
    names = list(map(attrgetter("tenant"), injected.requests))
    codes = {name: code for code, name in enumerate(dict.fromkeys(names))}
    if len(codes) == 1:
        latency = {name: accounts.latency_statistics[name] for name in LATENCIES}
        return {str(name): {"requests": status_counts(injected.status)} | latency for name in codes}
    coded = np.fromiter(map(codes.__getitem__, names), np.int64, len(names))
    found = {}
    for name, code in codes.items():
        chosen = coded == code
        latency = latency_summary(injected, accounts.latencies, chosen)
        found[str(name)] = {"requests": status_counts(injected.status[chosen])} | latency
    return found


REQUESTS = Metric(
    "requests",
    "counts: `injected` = `finished` + `rejected` + `timed_out` + `cancelled` + `waiting` + `running`",
    lambda accounts: status_counts(accounts.injected.status),
    COUNTS,
)
REJECTIONS = Metric(
    "rejections", "counts of `rejected` by reason", rejections, {"*": Value("int64", "requests", better="lower")}
)
TENANTS = Metric(
    "tenants",
    "by name: `requests` of each tenant, and `wait_s`, `ttft_s`, `tpot_s`, `itl_s`, `e2e_s`, `client_ttft_s` and "
    "`client_e2e_s`",
    tenants,
    {f"*.requests.{status}": value for status, value in COUNTS.items()}
    | {f"*.{latency}.{statistic}": value for latency in LATENCIES for statistic, value in STATISTICS.items()},
)
