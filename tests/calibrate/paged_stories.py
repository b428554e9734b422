"""Small paged caches whose unused places are not numbers, and what attention to them must give, in float64."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import torch
from torch import Tensor

from calibrate.ragged import Ragged


@dataclass(frozen=True)
class Story:
    """A batch, its queries, and the paged keys and values it attends to."""

    batch: Ragged
    queries: Tensor
    keys: Tensor
    values: Tensor


def story(
    counts: list[int],
    spans: list[int],
    *,
    heads: int,
    kv_heads: int,
    head: int,
    page_size: int,
    dtype: torch.dtype = torch.float32,
    seed: int = 0,
) -> Story:
    """Rows that compute `counts` positions of sequences `spans` long (decodes first), in shuffled pages.

    Every place without a position holds NaN, and so does a page to which the unused ends of the tables point.
    """
    draw = torch.Generator().manual_seed(seed)
    needed = [-(-span // page_size) for span in spans]
    order = torch.randperm(sum(needed) + 3, generator=draw)
    tables = torch.full((len(spans), max(1, *needed)), int(order[-1]), dtype=torch.int32)
    keys = torch.full((len(order), kv_heads, page_size, head), float("nan"), dtype=dtype)
    values = keys.clone()
    taken = 0
    for row, span in enumerate(spans):
        tables[row, : needed[row]] = order[taken : taken + needed[row]]
        taken += needed[row]
        for position in range(span):
            page, place = int(tables[row, position // page_size]), position % page_size
            keys[page, :, place] = torch.randn(kv_heads, head, generator=draw).to(dtype)
            values[page, :, place] = torch.randn(kv_heads, head, generator=draw).to(dtype)
    decodes = counts.index(next((n for n in counts if n != 1), None)) if any(n != 1 for n in counts) else len(counts)
    owners = torch.tensor([row for row, count in enumerate(counts) for _ in range(count)], dtype=torch.int32)
    positions = [max(span - count, 0) + i for count, span in zip(counts, spans, strict=True) for i in range(count)]
    ends = torch.tensor([0, *counts[decodes:]], dtype=torch.int32).cumsum(0).int()
    batch = Ragged(
        tables=tables,
        lengths=torch.tensor(spans, dtype=torch.int32),
        positions=torch.tensor(positions, dtype=torch.int32),
        owners=owners,
        offsets=ends,
        counts=tuple(counts),
        spans=tuple(spans),
        page_size=page_size,
        decodes=decodes,
    )
    return Story(batch, torch.randn(sum(counts), heads, head, generator=draw).to(dtype), keys, values)


def exact(told: Story) -> Tensor:
    """Softmax attention written out in float64, position by position from the tables; zeros for empty rows."""
    queries = told.queries.double()
    heads, kv_heads = queries.shape[1], told.keys.shape[1]
    out = torch.zeros_like(queries)
    token = 0
    for row, (count, span) in enumerate(zip(told.batch.counts, told.batch.spans, strict=True)):
        for i in range(count):
            seen = span - count + i + 1 if span else 0
            pages = [int(told.batch.tables[row, p // told.batch.page_size]) for p in range(seen)]
            for head in range(heads if seen else 0):
                shared = head * kv_heads // heads
                at = [(page, shared, p % told.batch.page_size) for p, page in enumerate(pages)]
                key = torch.stack([told.keys[place] for place in at]).double()
                value = torch.stack([told.values[place] for place in at]).double()
                score = key @ queries[token, head] / sqrt(queries.shape[2])
                out[token, head] = score.softmax(0) @ value
            token += 1
    return out


def error(found: Tensor, right: Tensor) -> float:
    """The largest difference, relative to the largest value; NaN counts as infinite."""
    difference = (found.double() - right).abs().max() / right.abs().max()
    return float("inf") if difference.isnan() else float(difference)
