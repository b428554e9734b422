"""Triton kernels of paged attention: decodes in splits of their context, chunks in tiles of their queries.

Both read lengths and page tables on the device, so the grid of a captured graph is right for any lengths and tables.
Softmax runs in base 2 over scores scaled by log2(e), with the usual running maximum and sum (Dao et al.,
FlashAttention, 2022; split over the context as in Flash-Decoding, 2023). A page number is loaded once for all
positions of its page where a tile is a number of whole pages, else once a position, so every page size works;
kernels are not recompiled for the alignment or width of a table. Pages are (kv_heads, page_size, head_size): one
head of a page is contiguous.
"""

# mypy: disable-error-code="no-untyped-def, misc, untyped-decorator"

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def pages_of(table, start, last, PAGE: tl.constexpr, TILE: tl.constexpr):
    """The page of each position of a tile; of whole pages each number is loaded once."""
    if TILE % PAGE == 0:
        slot = start // PAGE + tl.arange(0, TILE // PAGE)
        page = tl.load(table + slot, mask=slot * PAGE < last, other=0)
        page = tl.reshape(tl.broadcast_to(page[:, None], [TILE // PAGE, PAGE]), [TILE])
    else:
        position = start + tl.arange(0, TILE)
        page = tl.load(table + position // PAGE, mask=position < last, other=0)
    return page.to(tl.int64)


@triton.jit(do_not_specialize=["table_row"], do_not_specialize_on_alignment=["tables", "lengths"])
def decode_splits(
    queries,
    keys,
    values,
    tables,
    lengths,
    out,
    parts,
    weights,
    scale,
    query_row,
    page_stride,
    head_stride,
    place_stride,
    table_row,
    HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    GROUP_TILE: tl.constexpr,
    HEAD: tl.constexpr,
    PAGE: tl.constexpr,
    TILE: tl.constexpr,
    SPLITS: tl.constexpr,
):
    """One row, one key head, one split: the group's query heads over their part of the context.

    With one split the answer goes to `out`; else it goes to `parts`, normalized, with the logarithm of its sum in
    `weights` (-inf for a split without a position).
    """
    row, kv_head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    length = tl.load(lengths + row)
    share = tl.cdiv(tl.cdiv(length, SPLITS), TILE) * TILE
    first = split * share
    last = tl.minimum(first + share, length)

    member, column = tl.arange(0, GROUP_TILE), tl.arange(0, HEAD)
    head = kv_head * GROUP + member
    real = (member < GROUP)[:, None]
    query = tl.load(queries + row * query_row + head[:, None] * HEAD + column[None, :], mask=real, other=0.0)

    highest = tl.full([GROUP_TILE], float("-inf"), tl.float32)
    total = tl.zeros([GROUP_TILE], tl.float32)
    mixed = tl.zeros([GROUP_TILE, HEAD], tl.float32)
    for start in range(first, last, TILE):
        position = start + tl.arange(0, TILE)
        within = position < last
        page = pages_of(tables + row * table_row, start, last, PAGE, TILE)
        place = page * page_stride + kv_head * head_stride + (position % PAGE) * place_stride
        where = place[:, None] + column[None, :]
        key = tl.load(keys + where, mask=within[:, None], other=0.0)
        score = tl.dot(query, tl.trans(key), input_precision="ieee") * scale
        score = tl.where(within[None, :], score, float("-inf"))
        higher = tl.maximum(highest, tl.max(score, 1))
        shrink = tl.exp2(highest - higher)
        share_of = tl.exp2(score - higher[:, None])
        value = tl.load(values + where, mask=within[:, None], other=0.0)
        mixed = mixed * shrink[:, None] + tl.dot(share_of.to(value.dtype), value, input_precision="ieee")
        total = total * shrink + tl.sum(share_of, 1)
        highest = higher

    found = total > 0
    answer = mixed / tl.where(found, total, 1.0)[:, None]
    if SPLITS == 1:
        where = (row * HEADS + head[:, None]) * HEAD + column[None, :]
        tl.store(out + where, answer.to(out.dtype.element_ty), mask=real)
    else:
        part = (row * HEADS + head) * SPLITS + split
        tl.store(parts + part[:, None] * HEAD + column[None, :], answer, mask=real)
        weight = tl.where(found, highest + tl.log2(tl.where(found, total, 1.0)), float("-inf"))
        tl.store(weights + part, weight, mask=member < GROUP)


@triton.jit
def merge_splits(
    parts, weights, out, HEADS: tl.constexpr, HEAD: tl.constexpr, SPLITS: tl.constexpr, SPLIT_TILE: tl.constexpr
):
    """One row, one query head: its splits by their weights; zeros if none has a position."""
    row, head = tl.program_id(0), tl.program_id(1)
    split, column = tl.arange(0, SPLIT_TILE), tl.arange(0, HEAD)
    part = (row * HEADS + head) * SPLITS + split
    real = split < SPLITS
    weight = tl.load(weights + part, mask=real, other=float("-inf"))
    highest = tl.max(weight, 0)
    weight = tl.exp2(weight - tl.where(highest == float("-inf"), 0.0, highest))
    answer = tl.load(parts + part[:, None] * HEAD + column[None, :], mask=real[:, None], other=0.0)
    total = tl.sum(weight, 0)
    answer = tl.sum(answer * weight[:, None], 0) / tl.where(total > 0, total, 1.0)
    tl.store(out + (row * HEADS + head) * HEAD + column, answer.to(out.dtype.element_ty))


@triton.jit(do_not_specialize=["table_row"], do_not_specialize_on_alignment=["tables", "lengths", "offsets"])
def chunk_tiles(
    queries,
    keys,
    values,
    tables,
    lengths,
    offsets,
    out,
    scale,
    query_row,
    page_stride,
    head_stride,
    place_stride,
    table_row,
    HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    HEAD: tl.constexpr,
    PAGE: tl.constexpr,
    QUERIES: tl.constexpr,
    TILE: tl.constexpr,
):
    """A tile of one chunk's queries, one query head: causal over all positions up to each query's own."""
    tile, head, row = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    begin = tl.load(offsets + row)
    count = tl.load(offsets + row + 1) - begin
    if tile * QUERIES < count:
        length = tl.load(lengths + row)
        start = length - count
        index, column = tile * QUERIES + tl.arange(0, QUERIES), tl.arange(0, HEAD)
        real = (index < count)[:, None]
        token = (begin + index).to(tl.int64)
        query = tl.load(queries + token[:, None] * query_row + head * HEAD + column[None, :], mask=real, other=0.0)

        highest = tl.full([QUERIES], float("-inf"), tl.float32)
        total = tl.zeros([QUERIES], tl.float32)
        mixed = tl.zeros([QUERIES, HEAD], tl.float32)
        last = tl.minimum(start + (tile + 1) * QUERIES, length)
        for first in range(0, last, TILE):
            position = first + tl.arange(0, TILE)
            within = position < last
            page = pages_of(tables + row * table_row, first, last, PAGE, TILE)
            place = page * page_stride + (head // GROUP) * head_stride + (position % PAGE) * place_stride
            where = place[:, None] + column[None, :]
            key = tl.load(keys + where, mask=within[:, None], other=0.0)
            score = tl.dot(query, tl.trans(key), input_precision="ieee") * scale
            seen = within[None, :] & (position[None, :] <= (start + index)[:, None])
            score = tl.where(seen, score, float("-inf"))
            higher = tl.maximum(highest, tl.max(score, 1))
            shrink = tl.exp2(highest - higher)
            share_of = tl.exp2(score - higher[:, None])
            value = tl.load(values + where, mask=within[:, None], other=0.0)
            mixed = mixed * shrink[:, None] + tl.dot(share_of.to(value.dtype), value, input_precision="ieee")
            total = total * shrink + tl.sum(share_of, 1)
            highest = higher
        where = (token[:, None] * HEADS + head) * HEAD + column[None, :]
        tl.store(out + where, (mixed / total[:, None]).to(out.dtype.element_ty), mask=real)
