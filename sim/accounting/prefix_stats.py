"""What the prefix cache gave: hits among the tokens looked up, read from the log.

Every admission looks up the tokens known so far, and what it finds counts as hits. A first one looks for the prompt;
one after a preemption for the generated tokens too, and mostly finds what was its own: that is counted apart, as vLLM
does, whose metrics have the first kind only. Knows nothing of pages by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from sim.accounting.requests import Lives
from sim.log.events import EventLog, Integers, Kind
from sim.request import Request


def cache(fleet: Sequence[Lives]) -> dict[str, Any] | None:
    """How the caches of all replicas were used, None for engines without one.

    What preempted requests looked up and found when they came back is in the rows `resumed_...` alone.
    idle_pages: pages that nobody held but could be found, mean over the time in which steps ran.
    top_prompt_share: of the hit tokens, the share that came to requests with the same prompt, the largest;
    None without hits, or where fewer than two different prompts were sent.
    """
    uses = [lives.log.cache for lives in fleet if lives.log.cache is not None]
    if not uses:
        return None
    hits = sum(hit_tokens(lives) for lives in fleet)
    all_hits = sum(int(lives.value[lives.kind == Kind.ADMITTED].sum()) for lives in fleet)
    queried = sum(use.queried for use in uses)
    requests = [request for lives in fleet for request in lives.log.requests]
    idle = [idle_pages(lives.log) for lives in fleet if lives.log.steps]
    return {
        "warm_pages": sum(use.warm_pages for use in uses),
        "queried_tokens": queried,
        "hit_tokens": hits,
        "hit_rate": hits / queried if queried else None,
        "resumed_queried_tokens": sum(use.requeried for use in uses),
        "resumed_hit_tokens": all_hits - hits,
        "evictions": sum(use.evictions for use in uses),
        "idle_pages": sum(idle) if idle else None,
        "top_prompt_share": top_prompt(fleet) / hits if hits and several_prompts(requests) else None,
    }


def first_admissions(lives: Lives) -> Integers:
    """The events of a log that admit a request for the first time, by their places."""
    admitted = np.flatnonzero(lives.kind == Kind.ADMITTED)
    _, first = np.unique(lives.request[admitted], return_index=True)
    return admitted[first]


def hit_tokens(lives: Lives) -> int:
    """Tokens that first admissions found."""
    return int(lives.value[first_admissions(lives)].sum())


def idle_pages(log: EventLog) -> float:
    """Time-weighted mean of the pages of a replica that could be found and were held by nobody, while steps ran."""
    durations = log.step_durations()
    return float((log.cached_by_step() * durations).sum() / durations.sum())


def prompt(request: Request) -> object:
    """What makes two prompts the same: what they say; one of unknown content is like no other."""
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


def top_prompt(fleet: Sequence[Lives]) -> int:
    """Hit tokens of the prompt with the most of them."""
    hits: Counter[object] = Counter()
    for lives in fleet:
        found = first_admissions(lives)
        for index, tokens in zip(lives.request[found].tolist(), lives.value[found].tolist(), strict=True):
            hits[prompt(lives.log.requests[index])] += tokens
    return max(hits.values())
