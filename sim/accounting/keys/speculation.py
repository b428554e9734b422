"""What speculative decoding brought, and what it computed in vain."""

from __future__ import annotations

from sim.accounting.accounts import Accounts
from sim.accounting.metric import Metric, Value
from sim.accounting.rates import ratio


def speculation(accounts: Accounts) -> dict[str, float | int | None] | None:
    """Counts over all replicas; None if no step verified anything."""
    found = [records.verifications for records in accounts.fleet]
    verifications = sum(len(each.step) for each in found)
    if not verifications:
        return None
    computed = sum(int(each.tokens.sum()) for each in found)
    given = sum(int(each.given.sum()) for each in found)
    drafts, accepted = computed - verifications, given - verifications
    return {
        "verifications": verifications,
        "drafts": drafts,
        "accepted": accepted,
        "rejected": drafts - accepted,
        "acceptance": ratio(accepted, drafts),
        "tokens_per_verification": given / verifications,
    }


SPECULATION = Metric(
    "speculation",
    "speculative decoding, null without it: `verifications`, a sequence in a step that verifies its drafts; `drafts` "
    "verified; `accepted`, those that became tokens; `rejected`, the others: positions computed in vain, be it that "
    "the model chose another token or that the request had reached its end; `acceptance`, accepted / drafts; "
    "`tokens_per_verification`, the accepted ones and one more",
    speculation,
    {
        "verifications": Value("int64", column=False),
        "drafts": Value("int64", "tokens", column=False),
        "accepted": Value("int64", "tokens", column=False),
        "rejected": Value("int64", "positions", better="lower"),
        "acceptance": Value(unit="share", better="higher"),
        "tokens_per_verification": Value(unit="tokens", better="higher"),
    },
)
