"""How many requests met the objectives of a scenario."""

from __future__ import annotations

from sim.accounting.accounts import Accounts
from sim.accounting.metric import Metric, Value
from sim.accounting.rates import ratio
from sim.request import SECOND


def goodput(accounts: Accounts) -> float | None:
    """Requests that met all objectives, per second."""
    return None if accounts.met is None else ratio(accounts.met * SECOND, accounts.span)


def attainment(accounts: Accounts) -> float | None:
    """The share of the requests that met all objectives."""
    return None if accounts.met is None else ratio(accounts.met, len(accounts.injected.status))


GOODPUT = Metric(
    "goodput_per_s",
    "requests that met all objectives, per second of makespan; null without objectives",
    goodput,
    {"": Value(unit="requests/s", better="higher")},
    line="",
)
ATTAINMENT = Metric(
    "attainment",
    "share of *injected* requests that met all objectives; null without objectives",
    attainment,
    {"": Value(unit="share", best="highest", name="attainment", header="attain-\nment")},
    line="",
)
OBJECTIVES_FROM = Metric(
    "objectives_from",
    "from when `attainment` and `goodput_per_s` count: `wanted` or `sent` ([objectives](scenario.md#objectives)); "
    "null without objectives",
    lambda accounts: None if accounts.met is None else accounts.since,
    {"": Value("string", column=False)},
)
