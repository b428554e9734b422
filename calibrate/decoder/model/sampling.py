"""The next token from its logits: the best one, or one drawn by a number of its request and position."""

from __future__ import annotations

from hashlib import blake2b

import torch
from torch import Tensor


def best(logits: Tensor) -> Tensor:
    """The token with the highest logit, the first of equal ones."""
    return logits.argmax(dim=-1)


def drawn(logits: Tensor, draws: Tensor, temperature: float) -> Tensor:
    """The token at which the cumulated softmax of logits / temperature passes the draw (inverse transform)."""
    heights = torch.softmax(logits.float() / temperature, dim=-1).cumsum(dim=-1)
    place = torch.searchsorted(heights, draws[:, None] * heights[:, -1:], right=True)[:, 0]
    return place.clamp_max(logits.shape[-1] - 1)


def uniform(seed: int, request: int, position: int) -> float:
    """A number from 0 to 1 for one position of one request, the same in any batch and on any machine."""
    digest = blake2b(f"{seed} {request} {position}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") / 2**64
