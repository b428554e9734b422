"""Requests and tokens per second, and requests at once."""

from __future__ import annotations

from typing import Any

from sim.accounting.accounts import Accounts
from sim.accounting.concurrency import concurrency
from sim.accounting.metric import Metric, Value
from sim.accounting.rates import by_gaps, over_span, ratio
from sim.accounting.requests import FINISHED
from sim.request import SECOND


def rates(accounts: Accounts) -> dict[str, float | None]:
    """Requests wanted and finished per second, and tokens delivered per second of the run."""
    injected = accounts.injected
    finished = injected.status == FINISHED
    tokens = sum(int(records.tokens.sum()) for records in accounts.fleet)
    return {
        "offered_per_s": over_span(injected.wanted),
        "offered_by_gaps_per_s": by_gaps(injected.wanted),
        "finished_per_s": ratio(int(finished.sum()) * SECOND, injected.span),
        "finished_by_gaps_per_s": by_gaps(injected.finished[finished]),
        "output_tokens_per_s": ratio(tokens * SECOND, injected.span),
    }


def at_once(accounts: Accounts) -> dict[str, Any]:
    """Requests in flight and running over the makespan."""
    return concurrency(accounts.injected, accounts.begin, accounts.begin + accounts.span)


RATES = Metric(
    "rates",
    "`offered_per_s`: n injected requests over the time from the first to the last that clients wanted to send, and "
    "`offered_by_gaps_per_s`: the n - 1 gaps between them over the same time, which is the rate of a steady stream. "
    "`finished_per_s`: n finished requests over the makespan, and `finished_by_gaps_per_s`: the n - 1 gaps from the "
    "first end to the last. `output_tokens_per_s`, over the makespan",
    rates,
    {
        "offered_per_s": Value(unit="requests/s"),
        "offered_by_gaps_per_s": Value(unit="requests/s"),
        "finished_per_s": Value(unit="requests/s", better="higher"),
        "finished_by_gaps_per_s": Value(unit="requests/s", better="higher"),
        "output_tokens_per_s": Value(unit="tok/s", best="highest", name="output rate", header="output"),
    },
)
CONCURRENCY = Metric(
    "concurrency",
    "numbers of requests: `in_flight_peak` and `in_flight_mean`, from queue entry to end; `running_peak` and "
    "`running_mean`, admitted and neither ended nor preempted. Means are over the makespan, and a slot that changes "
    "its request at one instant counts once",
    at_once,
    {
        "in_flight_peak": Value("int64", "requests"),
        "in_flight_mean": Value(unit="requests"),
        "running_peak": Value("int64", "requests"),
        "running_mean": Value(unit="requests"),
    },
)
