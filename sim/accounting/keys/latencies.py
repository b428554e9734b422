"""Latencies: a mapping of statistics each, in seconds."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from sim.accounting.accounts import Accounts
from sim.accounting.latencies import PERCENTILES, Statistics
from sim.accounting.metric import Metric, Value

STATISTICS = {
    "n": Value("int64", "requests"),
    "censored_share": Value(unit="share", better="lower", column=False),
    **{statistic: Value(unit="s", better="lower") for statistic in ("mean", *(f"p{p}" for p in PERCENTILES), "max")},
}


def statistics(accounts: Accounts, key: str) -> Statistics:
    """The statistics of one latency over all requests."""
    return accounts.latency_statistics[key]


def latency(key: str, about: str, name: str = "", **values: Value) -> Metric:
    """The metric of a latency; with a name, its mean and its 99th percentile are compared between runs."""
    compared = {
        which: replace(STATISTICS[which], best="lowest", name=f"{which} {name}", header=f"{name}\n{which}")
        for which in (("mean", "p99") if name else ())
    }
    return Metric(key, about, partial(statistics, key=key), STATISTICS | compared | values)


LONGEST_WAIT = Value(unit="s", best="lowest", name="maximum wait", header="longest\nwait", seeds=False)

WAIT = latency("wait_s", "queue entry to first admission; a preemption does not restart it", "wait", max=LONGEST_WAIT)
TTFT = latency("ttft_s", "queue entry to first token", "TTFT")
TPOT = latency(
    "tpot_s",
    "(completion - first token) / (tokens - 1), a value per request; undefined for one token",
    "TPOT",
)
ITL = latency("itl_s", "gaps between consecutive tokens, pooled over requests")
E2E = latency("e2e_s", "queue entry to completion", "E2E")
CLIENT_TTFT = latency(
    "client_ttft_s",
    "to the first token from when the client wanted to send the request: the wait behind a window, and the `delay`, "
    "are included",
)
CLIENT_E2E = latency("client_e2e_s", "to completion, counted from the same time")
MAX_ITL = latency("max_itl_s", "the largest gap of each request")
CLIENT_WAIT = latency(
    "client_wait_s",
    "from its arrival until it joined the engine's queue: the wait behind a window of `clients`, and their `delay`",
)
