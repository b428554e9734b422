"""Prefix-cache hits of a trace: without a capacity limit, and for LRU caches of a few sizes.

Only leading blocks count, in the order of arrival, each request complete before the next: an upper bound for an
engine that serves the requests in that order. A cache of n blocks evicts the least recently used one. Generated
tokens are not cached.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence
from hashlib import blake2b
from typing import Any

CAPACITIES = (1_000, 5_000, 20_000, 50_000)

Prompt = tuple[Sequence[Hashable], int]
"""(ids of a prompt's blocks, number of its tokens); each id identifies its block and all blocks before it."""


def prefix_hits(prompts: Sequence[Prompt], size: int, capacities: Iterable[int] = CAPACITIES) -> dict[str, Any]:
    """Hit shares of blocks and tokens in an unlimited cache, and of blocks in LRU caches of `capacities` blocks."""
    blocks, tokens = sum(len(names) for names, _ in prompts), sum(length for _, length in prompts)
    hits = found(prompts, None)
    return {
        "block_size": size,
        "blocks": blocks,
        "unique": len({name for names, _ in prompts for name in names}),
        "hit_blocks": sum(hits) / blocks,
        "hit_tokens": sum(min(k * size, n) for k, (_, n) in zip(hits, prompts, strict=True)) / tokens,
        "lru": {str(capacity): sum(found(prompts, capacity)) / blocks for capacity in capacities},
    }


def found(prompts: Sequence[Prompt], capacity: int | None) -> list[int]:
    """The leading blocks of each prompt that hit a cache of `capacity` blocks (None: unlimited)."""
    cache: OrderedDict[Hashable, None] = OrderedDict()
    hits = []
    for names, _ in prompts:
        hits.append(next((k for k, name in enumerate(names) if name not in cache), len(names)))
        for name in names:
            cache[name] = None
            cache.move_to_end(name)
        while capacity is not None and len(cache) > capacity:
            cache.popitem(last=False)
    return hits


def chained(tokens: Sequence[int], size: int) -> list[bytes]:
    """Ids of the blocks of `size` token ids; each is a hash of all tokens up to the block's end."""
    names: list[bytes] = []
    key = b""
    for start in range(0, len(tokens), size):
        key = blake2b(key + repr(tokens[start : start + size]).encode(), digest_size=16).digest()
        names.append(key)
    return names
