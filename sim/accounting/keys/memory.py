"""The use of the page pools and of the prefix caches."""

from __future__ import annotations

from typing import Any

from sim.accounting.accounts import Accounts
from sim.accounting.ledger import fleet_pages
from sim.accounting.metric import Metric, Value
from sim.accounting.prefix_stats import cache


def pages(accounts: Accounts) -> dict[str, Any]:
    """The use of the pages of all replicas."""
    use = fleet_pages(accounts.fleet, accounts.injected.begins, accounts.span)
    return {
        "total": use.total,
        "mean_used": use.mean_used,
        "peak_used": use.peak_used,
        "mean_live_fraction": use.mean_live_fraction,
        "positions": use.positions,
    }


PAGES = Metric(
    "pages",
    "`total`; `mean_used` and `peak_used` held; `mean_live_fraction`, the time integral of live positions over "
    "that of positions in held pages; `positions`, time-weighted means of `live`, `tail`, `reserved`, `cached`, "
    "`free`, which add up to `total` x page size",
    pages,
    {
        "total": Value("int64", "pages"),
        "mean_used": Value(unit="pages"),
        "peak_used": Value("int64", "pages"),
        "mean_live_fraction": Value(unit="share"),
        **{
            f"positions.{kind}": Value(unit="positions", column=False)
            for kind in ("live", "tail", "reserved", "cached", "free")
        },
    },
)
CACHE = Metric(
    "cache",
    "the prefix cache, null without one: `queried_tokens`, looked up by first admissions; `hit_tokens`, found by "
    "them; `hit_rate`, null where no request says what is in its prompt; `resumed_queried_tokens` and "
    "`resumed_hit_tokens`, the same of admissions after a "
    "preemption (vLLM counts these apart, and does not export them); `evictions`, pages whose content was lost "
    "because they were reused; `idle_pages`, cached pages that no sequence holds, time-weighted mean over the time "
    "in which steps ran; `warm_pages`, cached when the run began (0: a cold start); `top_prompt_share`, the "
    "largest share of the hit tokens that came to requests with one and the same prompt, null if all prompts are "
    "the same",
    lambda accounts: cache(accounts.fleet),
    {
        "warm_pages": Value("int64", "pages", column=False),
        "queried_tokens": Value("int64", "tokens", column=False),
        "hit_tokens": Value("int64", "tokens", better="higher", column=False),
        "hit_rate": Value(unit="share", better="higher"),
        "resumed_queried_tokens": Value("int64", "tokens", column=False),
        "resumed_hit_tokens": Value("int64", "tokens", column=False),
        "evictions": Value("int64", "pages", better="lower", column=False),
        "idle_pages": Value(unit="pages", column=False),
        "top_prompt_share": Value(unit="share", column=False),
    },
)
