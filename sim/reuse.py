"""What the prefix cache gave: hits among the tokens looked up, read from the log.

Every admission looks up the tokens known so far, a first one the prompt, one after a preemption the
generated tokens too; what it finds counts as hits, be the page another request's or its own from before.
Knows nothing of pages by name.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from sim.events import EventLog, Kind
from sim.lives import Lives
from sim.request import Request


def cache(log: EventLog, lives: Lives) -> dict[str, Any] | None:
    """How the cache was used, None for an engine without one.

    idle_pages: pages that nobody held but could be found, mean over the time in which steps ran.
    top_prompt_share: of the hit tokens, the share that came to requests with the same prompt, the largest;
    None without hits, or where fewer than two different prompts were sent.
    """
    if log.cache is None:
        return None
    admitted = lives.kind == Kind.ADMITTED
    hits = int(lives.value[admitted].sum())
    queried = log.cache.queried
    return {
        "warm_pages": log.cache.warm_pages,
        "queried_tokens": queried,
        "hit_tokens": hits,
        "hit_rate": hits / queried if queried else None,
        "evictions": log.cache.evictions,
        "idle_pages": idle_pages(log),
        "top_prompt_share": top_prompt(log, lives) / hits if hits and several_prompts(log) else None,
    }


def idle_pages(log: EventLog) -> float | None:
    """Time-weighted mean of the pages that could be found and were held by nobody; None without a step."""
    if not log.steps:
        return None
    durations = log.step_durations()
    return float((log.cached_by_step() * durations).sum() / durations.sum())


def prompt(request: Request) -> object:
    """What makes two prompts the same: what they say; one of unknown content is like no other."""
    if request.tokens is None and not request.blocks:
        return request.id
    return request.tokens, request.blocks, request.block_size, request.adapter


def several_prompts(log: EventLog) -> bool:
    """Whether not all prompts are the same."""
    return any(prompt(request) != prompt(log.requests[0]) for request in log.requests)


def top_prompt(log: EventLog, lives: Lives) -> int:
    """Hit tokens of the prompt with the most of them."""
    hits: Counter[object] = Counter()
    found = (lives.kind == Kind.ADMITTED) & (lives.value > 0)
    for index, tokens in zip(lives.request[found].tolist(), lives.value[found].tolist(), strict=True):
        hits[prompt(log.requests[index])] += tokens
    return max(hits.values())
