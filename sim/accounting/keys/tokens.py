"""Token positions: delivered, computed, computed again, cached, lost."""

from __future__ import annotations

from operator import attrgetter

import numpy as np

from sim.accounting.accounts import Accounts, total
from sim.accounting.metric import Metric, Value
from sim.accounting.requests import FINISHED, RequestRecords
from sim.log.events import Kind


def counts(records: RequestRecords) -> dict[str, int]:
    """Token positions: prompts of finished requests, tokens delivered, positions computed, and lost tokens."""
    runs = records.log.run_table()
    prompts = np.fromiter(map(attrgetter("prompt"), records.log.requests), np.int64, len(records.log.requests))
    finished = records.status == FINISHED
    return {
        "prompt": int(prompts[finished].sum()),
        "output": int(records.tokens.sum()),
        "computed": int(runs["tokens"] @ runs["steps"]),
        "recomputed": int(records.value[np.isin(records.kind, (Kind.PREEMPTED, Kind.MOVED))].sum()),
        "cached": int(records.value[records.places(Kind.ADMITTED)].sum()),
        "rejected": records.verifications.rejected,
        "padding": int(runs["padding"] @ runs["steps"]),
        "lost": len(records.places(Kind.LOST)),
    }


def tokens(accounts: Accounts) -> dict[str, int]:
    """The counts of all replicas."""
    return total(counts(records) for records in accounts.fleet)


TOKENS = Metric(
    "tokens",
    "`prompt` of finished requests; `output` delivered; `computed` positions, all of them; `recomputed`, those "
    "that an earlier step had computed; `cached`, found computed at admissions; `rejected`, those of drafts that "
    "brought no token; `padding` computed for nothing by a static batch; `lost`, generated and never collected "
    "(`harvest: next`)",
    tokens,
    {
        **{kind: Value("int64", "tokens") for kind in ("prompt", "output", "computed")},
        "recomputed": Value("int64", "tokens", better="lower"),
        "cached": Value("int64", "tokens", better="higher"),
        **{kind: Value("int64", "tokens", better="lower") for kind in ("rejected", "padding", "lost")},
    },
)
