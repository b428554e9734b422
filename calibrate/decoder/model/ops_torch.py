"""The operators between a decoder's matrix products, in PyTorch. `ops_triton` has the same in Triton."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import rms_norm, silu

from calibrate.decoder.model.attention_metadata import AttentionMetadata


def norm(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """x over its root mean square, times the weight; the mean in float32."""
    return rms_norm(x.float(), (x.shape[-1],), None, epsilon).to(x.dtype) * weight


def add_norm(x: Tensor, residual: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """Add x to the residual, in place, and return the norm of the sum."""
    residual += x
    return norm(residual, weight, epsilon)


def rotate_and_keep(
    projected: Tensor, heads: int, rotary: Tensor, keys: Tensor, values: Tensor, batch: AttentionMetadata
) -> Tensor:
    """Rotate queries and keys by their positions, write keys and values into their pages, and return the queries.

    `projected` is (tokens, queries + keys + values); a head's first half is rotated with its second (Hugging Face's
    layout of Llama). `rotary` is (positions, 2, half a head): cosines and sines in float32.
    """
    kv_heads, width = keys.shape[1], keys.shape[3]
    each = projected.view(len(projected), heads + 2 * kv_heads, width)
    turned = rotated(each[:, : heads + kv_heads], rotary[batch.positions])
    keys[batch.pages, :, batch.places] = turned[:, heads:]
    values[batch.pages, :, batch.places] = each[:, heads + kv_heads :]
    return turned[:, :heads]


def rotated(x: Tensor, rotary: Tensor) -> Tensor:
    """(tokens, heads, head_size) rotated by (tokens, 2, half a head)."""
    cosine, sine = rotary[:, None, 0], rotary[:, None, 1]
    first, second = x.float().chunk(2, dim=-1)
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1).to(x.dtype)


def gated(x: Tensor) -> Tensor:
    """SwiGLU: silu of the first half of the columns times the second."""
    gate, up = x.chunk(2, dim=-1)
    return silu(gate) * up
