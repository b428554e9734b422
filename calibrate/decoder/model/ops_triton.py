"""The operators between a decoder's matrix products, one Triton kernel each; `ops_torch` has the same in PyTorch.

In PyTorch these are some forty launches a layer, and launches dominate a decode step on a GPU.
"""

# mypy: disable-error-code="no-untyped-def, misc, untyped-decorator"

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from calibrate.decoder.model.attention_metadata import AttentionMetadata

COLUMNS = 1024


@triton.jit
def norm_rows(x, residual, weight, out, epsilon, WIDTH: tl.constexpr, TILE: tl.constexpr, ADD: tl.constexpr):
    """One token: x, or x added to the residual, over its root mean square, times the weight."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, TILE)
    real = column < WIDTH
    given = tl.load(x + row * WIDTH + column, mask=real, other=0.0)
    if ADD:
        given += tl.load(residual + row * WIDTH + column, mask=real, other=0.0)
        tl.store(residual + row * WIDTH + column, given, mask=real)
    number = given.to(tl.float32)
    number *= tl.rsqrt(tl.sum(number * number, 0) / WIDTH + epsilon)
    scaled = number.to(out.dtype.element_ty) * tl.load(weight + column, mask=real, other=0.0)
    tl.store(out + row * WIDTH + column, scaled, mask=real)


@triton.jit(do_not_specialize_on_alignment=["positions", "pages", "places"])
def rotate_heads(
    projected,
    rotary,
    positions,
    pages,
    places,
    queries,
    keys,
    values,
    page_stride,
    head_stride,
    place_stride,
    HEADS: tl.constexpr,
    KV_HEADS: tl.constexpr,
    HALF: tl.constexpr,
    TILE: tl.constexpr,
):
    """One head of one token: a query is rotated, a key is rotated and stored, a value is stored."""
    token, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    column = tl.arange(0, TILE)
    real = column < HALF
    source = projected + (token * (HEADS + 2 * KV_HEADS) + head) * (2 * HALF)
    first = tl.load(source + column, mask=real)
    second = tl.load(source + HALF + column, mask=real)
    if head < HEADS + KV_HEADS:
        turn = rotary + tl.load(positions + token).to(tl.int64) * (2 * HALF)
        cosine = tl.load(turn + column, mask=real)
        sine = tl.load(turn + HALF + column, mask=real)
        one, two = first.to(tl.float32), second.to(tl.float32)
        first = (one * cosine - two * sine).to(first.dtype)
        second = (two * cosine + one * sine).to(second.dtype)
    if head < HEADS:
        target = queries + (token * HEADS + head) * (2 * HALF)
        tl.store(target + column, first, mask=real)
        tl.store(target + HALF + column, second, mask=real)
    else:
        mine = (head - HEADS) % KV_HEADS
        page, place = tl.load(pages + token).to(tl.int64), tl.load(places + token).to(tl.int64)
        where = page * page_stride + mine * head_stride + place * place_stride + column
        if head < HEADS + KV_HEADS:
            tl.store(keys + where, first, mask=real)
            tl.store(keys + where + HALF, second, mask=real)
        else:
            tl.store(values + where, first, mask=real)
            tl.store(values + where + HALF, second, mask=real)


@triton.jit
def swiglu_columns(x, out, WIDTH: tl.constexpr, TILE: tl.constexpr):
    """A tile of one token: silu of the first half of the columns times the second."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * TILE + tl.arange(0, TILE)
    real = column < WIDTH
    gate = tl.load(x + row * 2 * WIDTH + column, mask=real, other=0.0).to(tl.float32)
    up = tl.load(x + row * 2 * WIDTH + WIDTH + column, mask=real, other=0.0)
    silu = (gate / (1.0 + tl.exp(-gate))).to(up.dtype)
    tl.store(out + row * WIDTH + column, silu * up, mask=real)


def norm(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """x over its root mean square, times the weight; the mean in float32."""
    out = torch.empty_like(x)
    norm_rows[(len(x),)](x, x, weight, out, epsilon, **norm_constants(x.shape[-1], add=False))
    return out


def add_norm(x: Tensor, residual: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """Add x to the residual, in place, and return the norm of the sum."""
    out = torch.empty_like(x)
    norm_rows[(len(x),)](x, residual, weight, out, epsilon, **norm_constants(x.shape[-1], add=True))
    return out


def rotate_and_keep(
    projected: Tensor, heads: int, rotary: Tensor, keys: Tensor, values: Tensor, batch: AttentionMetadata
) -> Tensor:
    """Rotate queries and keys by their positions, write keys and values into their pages, and return the queries."""
    kv_heads, width = keys.shape[1], keys.shape[3]
    queries = projected.new_empty(len(projected), heads, width)
    rotate_heads[(len(projected), heads + 2 * kv_heads)](
        projected, rotary, batch.positions, batch.pages, batch.places, queries, keys, values, *keys.stride()[:3],
        **rotate_constants(heads, kv_heads, width), num_warps=1,
    )  # fmt: skip
    return queries


def gated(x: Tensor) -> Tensor:
    """SwiGLU: silu of the first half of the columns times the second."""
    width = x.shape[-1] // 2
    out = x.new_empty(len(x), width)
    swiglu_columns[(len(x), triton.cdiv(width, COLUMNS))](x, out, **swiglu_constants(width))
    return out


def norm_constants(width: int, add: bool) -> dict[str, int]:
    """The constants that the norm is compiled for."""
    return {"WIDTH": width, "TILE": triton.next_power_of_2(width), "ADD": add}


def rotate_constants(heads: int, kv_heads: int, width: int) -> dict[str, int]:
    """The constants that the rotation is compiled for."""
    half = width // 2
    return {"HEADS": heads, "KV_HEADS": kv_heads, "HALF": half, "TILE": triton.next_power_of_2(half)}


def swiglu_constants(width: int) -> dict[str, int]:
    """The constants that the SwiGLU is compiled for."""
    return {"WIDTH": width, "TILE": COLUMNS}
