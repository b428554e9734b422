"""What the pool that computes prompts and the pool that decodes did with their slots, and so what each waited for."""

from __future__ import annotations

from typing import Any

from sim.accounting.accounts import Accounts, total
from sim.accounting.client_view import ClientView
from sim.accounting.keys.ledger import LEDGER
from sim.accounting.metric import Metric, Value
from sim.request import SECOND

NAMES = ("prefill", "decode")


def pools(accounts: Accounts) -> list[dict[str, Any]] | None:
    """The ledger of each pool in slot-seconds, and the KV kept on its replicas; None without two pools."""
    view = accounts.injected
    if not isinstance(view, ClientView) or len(view.service_log.pools) != len(NAMES):
        return None
    _, since, until, replica, positions = view.service_log.table("kept").T
    found, first = [], 0
    for name, size in zip(NAMES, view.service_log.pools, strict=True):
        mine = (replica >= first) & (replica < first + size)
        area = int(((until - since) * positions)[mine].sum())
        time = total(time for _, time in accounts.ledgers[first : first + size])
        found.append(
            {
                "pool": name,
                "replicas": size,
                "slot_seconds": {row: spent / SECOND for row, spent in time.items()},
                "kept_positions": area / accounts.span if accounts.span else 0.0,
            }
        )
        first += size
    return found


POOLS = Metric(
    "pools",
    "null without two pools. Of each pool what its slots did, in `slot_seconds` as above, which says what it waited "
    "for: `idle` and `no_demand` for requests, or for KV of the pool before it; `no_memory` for pages, at the "
    "prefill pool also those that are kept until they are fetched; `held` for KV on its way (with `transfer.pull`). "
    "`kept_positions`: positions of KV kept there after their prompts were computed, mean over the makespan",
    pools,
    {
        "[].pool": Value("string"),
        "[].replicas": Value("int64", "replicas"),
        **{f"[].slot_seconds.{row}": Value(unit="slot-seconds") for row in (*LEDGER, "idle", "down")},
        "[].kept_positions": Value(unit="positions"),
    },
)
