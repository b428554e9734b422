"""Statistics of the prefix cache: hits among the tokens looked up, read from the log.

Every admission looks up the tokens known so far; those found are hits. A first admission looks up the prompt; one
after a preemption also the generated tokens, and mostly finds its own pages. The latter is counted apart, as in vLLM,
whose metrics have first admissions only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from sim.accounting.requests import RequestRecords
from sim.log.events import EventLog, Integers, Kind
from sim.request import Request


def cache(fleet: Sequence[RequestRecords]) -> dict[str, Any] | None:
    """The use of the caches of all replicas; None for engines without one.

    Tokens looked up and found by preempted requests are in `resumed_...` only.
    idle_pages: cached pages that no sequence held, mean over the time in which steps ran.
    hit_rate: None if nothing was looked up, and where no request says what is in its prompt: its share is not known.
    top_prompt_share: the largest share of the hit tokens that requests with the same prompt had; None without hits,
    or where fewer than two different prompts were sent.
    """
    uses = [records.log.cache for records in fleet if records.log.cache is not None]
    if not uses:
        return None
    hits = sum(hit_tokens(records) for records in fleet)
    all_hits = sum(int(records.value[records.kind == Kind.ADMITTED].sum()) for records in fleet)
    queried = sum(use.queried for use in uses)
    requests = [request for records in fleet for request in records.log.requests]
    idle = [idle_pages(records.log) for records in fleet if records.log.steps]
    return {
        "warm_pages": sum(use.warm_pages for use in uses),
        "queried_tokens": queried,
        "hit_tokens": hits,
        "hit_rate": hits / queried if queried and (hits or known(requests)) else None,
        "resumed_queried_tokens": sum(use.requeried for use in uses),
        "resumed_hit_tokens": all_hits - hits,
        "evictions": sum(use.evictions for use in uses),
        "idle_pages": sum(idle) if idle else None,
        "top_prompt_share": top_prompt(fleet) / hits if hits and several_prompts(requests) else None,
    }


def known(requests: Sequence[Request]) -> bool:
    """Whether any request says what is in its prompt."""
    return any(request.tokens is not None or request.blocks for request in requests)


def first_admissions(records: RequestRecords) -> Integers:
    """The events of a log that admit a request for the first time, by their places."""
    admitted = np.flatnonzero(records.kind == Kind.ADMITTED)
    _, first = np.unique(records.request[admitted], return_index=True)
    return admitted[first]


def hit_tokens(records: RequestRecords) -> int:
    """Tokens that first admissions found in the cache."""
    return int(records.value[first_admissions(records)].sum())


def idle_pages(log: EventLog) -> float:
    """Time-weighted mean of the cached pages of a replica that no sequence held, while steps ran."""
    durations = log.step_durations()
    return float((log.cached_by_step() * durations).sum() / durations.sum())


def prompt(request: Request) -> object:
    """Equal for equal prompts, by content; a prompt of unknown content equals no other."""
    if request.tokens is None and not request.blocks:
        return request.id
    tokens, blocks = request.tokens, request.blocks
    if request.spoken:
        tokens = tokens and tokens[: request.prompt]
        blocks = blocks and blocks[: -(-request.prompt // request.block_size)]
    return tokens, blocks, request.block_size, request.adapter


def several_prompts(requests: Sequence[Request]) -> bool:
    """Whether not all prompts are the same."""
    return any(prompt(request) != prompt(requests[0]) for request in requests)


def top_prompt(fleet: Sequence[RequestRecords]) -> int:
    """Hit tokens of the prompt with the most of them."""
    hits: Counter[object] = Counter()
    for records in fleet:
        found = first_admissions(records)
        for index, tokens in zip(records.request[found].tolist(), records.value[found].tolist(), strict=True):
            hits[prompt(records.log.requests[index])] += tokens
    return max(hits.values())
