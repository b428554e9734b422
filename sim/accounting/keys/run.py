"""The run as a whole: its digest, its length, and how much of the engine it used."""

from __future__ import annotations

import hashlib

from sim.accounting.accounts import Accounts
from sim.accounting.ledger import USEFUL
from sim.accounting.metric import Metric, Value
from sim.accounting.rates import ratio
from sim.request import SECOND


def fingerprint(accounts: Accounts) -> str:
    """The digest of a log, or of the digests of several, and of what happened between them."""
    logs, service_log = accounts.logs, accounts.service_log
    if service_log is not None and service_log.eventful:
        return service_log.sha256(logs)
    if len(logs) == 1:
        return logs[0].sha256()
    return hashlib.sha256("".join(f"{log.sha256()}\n" for log in logs).encode()).hexdigest()


def occupancy(accounts: Accounts) -> float | None:
    """Useful slot-steps over those bought."""
    return ratio(sum(accounts.slot_steps[row] for row in USEFUL), accounts.slot_steps["bought"])


def tokens_per_slot_step(accounts: Accounts) -> float | None:
    """Tokens delivered over slot-steps bought."""
    return ratio(sum(int(records.tokens.sum()) for records in accounts.fleet), accounts.slot_steps["bought"])


LOG_SHA256 = Metric(
    "log_sha256",
    "digest of the event log: equal if and only if the logs are equal",
    fingerprint,
    {"": Value("string")},
)
STEPS = Metric(
    "steps",
    "forward passes",
    lambda accounts: sum(log.steps for log in accounts.logs),
    {"": Value("int64", "steps")},
    line="",
)
MAKESPAN = Metric(
    "makespan_s",
    "from the first queue entry to the last end",
    lambda accounts: accounts.span / SECOND,
    {"": Value(unit="s", best="shortest", name="makespan", header="make-\nspan", seeds=False)},
    line="",
)
OCCUPANCY = Metric(
    "occupancy",
    "(`decode` + `prefill`) / `bought`, in slot-steps",
    occupancy,
    {"": Value(unit="share", best="highest", name="occupancy", header="occu-\npancy")},
    line="",
)
PREEMPTIONS = Metric(
    "preemptions",
    "number of preemptions of running sequences",
    lambda accounts: sum(int(records.preemptions.sum()) for records in accounts.fleet),
    {"": Value("int64", best="fewest", name="preemptions", header="preemp-\ntions", seeds=False)},
)
TOKENS_PER_SLOT_STEP = Metric(
    "tokens_per_slot_step",
    "tokens delivered / slot-steps bought",
    tokens_per_slot_step,
    {"": Value(unit="tokens", better="higher")},
    line="",
)
