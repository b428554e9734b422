"""The prompts of a scenario as tokens of a model: always the same for the same seed.

Token ids that a request states are taken modulo the vocabulary; a block stands for the same tokens in every request;
a prompt of which only the length is known has tokens of its own. So prefixes that the cache finds equal are equal.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b

import numpy as np

from sim.request import Request


def prompts(vocabulary: int, seed: int) -> Callable[[Request], array[int]]:
    """A function from a request to the tokens of its prompt, each below `vocabulary`."""

    @lru_cache(maxsize=4096)
    def drawn(name: str, length: int) -> array[int]:
        digest = blake2b(f"{seed}\t{name}".encode(), digest_size=16).digest()
        stream = np.random.default_rng(int.from_bytes(digest, "big"))
        return array("i", stream.integers(0, vocabulary, length, dtype=np.int32).tobytes())

    def tokens(request: Request) -> array[int]:
        if request.tokens is not None:
            return array("i", [token % vocabulary for token in request.tokens])
        if not request.blocks:
            return drawn(f"request {request.id}", request.prompt)
        said = array("i")
        for block in request.blocks:
            said += drawn(f"block {block!r}", request.block_size)
        return said[: request.prompt]

    return tokens
