"""The ledger: what the slots did, in slot-steps and in slot-seconds."""

from __future__ import annotations

from sim.accounting.accounts import Accounts, total
from sim.accounting.ledger import ROWS
from sim.accounting.metric import Metric, Value
from sim.request import SECOND

LEDGER = ("bought", *ROWS)
LOSSES = ("recomputed", "wasted", "held", "no_memory", "no_budget", "blocked", "limited", "down")
"""Rows of which fewer are better; work and missing demand are neither."""


def slot_seconds(accounts: Accounts) -> dict[str, float]:
    """The ledger in time."""
    return {row: time / SECOND for row, time in total(time for _, time in accounts.ledgers).items()}


SLOT_STEPS = Metric(
    "slot_steps",
    "the ledger: `bought` = slots x `steps` = the sum of the rows `decode`, `prefill`, `recomputed`, `wasted`, "
    "`held`, `no_demand`, `no_memory`, `no_budget`, `blocked`, `limited`",
    lambda accounts: accounts.slot_steps,
    {row: Value("int64", "slot-steps", better="lower" if row in LOSSES else "") for row in LEDGER},
)
SLOT_SECONDS = Metric(
    "slot_seconds",
    "the same rows in time, and `idle`, in which no step ran; where `service` is not null also `down`, in which the "
    "replica had failed, with the step that the failure cut; `bought` = slots x makespan",
    slot_seconds,
    {row: Value(unit="slot-seconds", better="lower" if row in LOSSES else "") for row in (*LEDGER, "idle", "down")},
)
