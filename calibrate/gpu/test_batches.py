"""Paged batches to test attention on: random, in shuffled pages, NaN in every place that holds no position.

And the right output for them, computed in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt

import torch
from torch import Tensor

from calibrate.decoder.model.attention_metadata import AttentionMetadata


@dataclass(frozen=True)
class AttentionInputs:
    """A batch, its queries (tokens, heads, head_size), and the paged keys and values it attends to."""

    batch: AttentionMetadata
    queries: Tensor
    keys: Tensor
    values: Tensor

    def elsewhere(self, seed: int) -> AttentionInputs:
        """The same in other physical pages."""
        moved = torch.randperm(len(self.keys), generator=torch.Generator().manual_seed(seed)).to(self.keys.device)
        tables = moved.argsort().int()[self.batch.tables]
        return replace(
            self, batch=replace(self.batch, tables=tables), keys=self.keys[moved], values=self.values[moved]
        )

    def corrupted(self) -> AttentionInputs:
        """With the second page of every row that has three full ones replaced by the third."""
        tables = self.batch.tables.clone()
        long = self.batch.lengths >= 3 * self.batch.page_size
        tables[long, 1] = tables[long, 2]
        return replace(self, batch=replace(self.batch, tables=tables))


def random_inputs(
    counts: Sequence[int],
    spans: Sequence[int],
    *,
    heads: int,
    kv_heads: int,
    head: int,
    page_size: int,
    dtype: torch.dtype = torch.float32,
    device: torch.device | None = None,
    seed: int = 0,
) -> AttentionInputs:
    """Inputs of rows that compute `counts` positions of sequences `spans` long, those that compute one first.

    Every place without a position holds NaN, and so does the page that the unused ends of the tables point to.
    """
    draw = torch.Generator().manual_seed(seed)
    needed = [-(-span // page_size) for span in spans]
    order = torch.randperm(sum(needed) + 3, generator=draw, dtype=torch.int32)
    tables = torch.full((len(spans), max(1, *needed)), int(order[-1]), dtype=torch.int32)
    keys = torch.full((len(order), kv_heads, page_size, head), float("nan"), dtype=dtype)
    values = keys.clone()
    taken = 0
    for row, span in enumerate(spans):
        tables[row, : needed[row]] = order[taken : taken + needed[row]]
        taken += needed[row]
        position = torch.arange(span)
        page, place = tables[row, position // page_size], position % page_size
        for cache in (keys, values):
            cache[page, :, place] = torch.randn(span, kv_heads, head, generator=draw).to(dtype)
    decodes = sum(count == 1 for count in counts)
    starts = [max(0, span - count) for count, span in zip(counts, spans, strict=True)]
    queries = torch.randn(sum(counts), heads, head, generator=draw).to(dtype)
    where = device or torch.device("cpu")
    batch = AttentionMetadata(
        tables=tables.to(where),
        lengths=torch.tensor(spans, dtype=torch.int32, device=where),
        positions=torch.cat([torch.arange(s, s + n) for s, n in zip(starts, counts, strict=True)]).int().to(where),
        owners=torch.arange(len(counts)).repeat_interleave(torch.tensor(counts)).int().to(where),
        offsets=torch.tensor([0, *counts[decodes:]]).cumsum(0).int().to(where),
        counts=tuple(counts),
        spans=tuple(spans),
        page_size=page_size,
        decodes=decodes,
    )
    return AttentionInputs(batch, queries.to(where), keys.to(where), values.to(where))


def exact(given: AttentionInputs) -> Tensor:
    """Softmax attention in float64, row by row; zeros for rows without positions."""
    batch = given.batch
    out = torch.zeros_like(given.queries, dtype=torch.float64)
    group = given.queries.shape[1] // given.keys.shape[1]
    first = 0
    for row, (count, span) in enumerate(zip(batch.counts, batch.spans, strict=True)):
        if span:
            position = torch.arange(span, device=out.device)
            page, place = batch.tables[row, position // batch.page_size], position % batch.page_size
            key, value = (
                cache[page, :, place].double().repeat_interleave(group, dim=1) for cache in (given.keys, given.values)
            )
            query = given.queries[first : first + count].double()
            score = torch.einsum("ihd,jhd->hij", query, key) / sqrt(query.shape[2])
            later = position[None, :] > position[span - count :, None]
            weight = score.masked_fill(later, float("-inf")).softmax(-1)
            out[first : first + count] = torch.einsum("hij,jhd->ihd", weight, value)
        first += count
    return out


def error(found: Tensor, right: Tensor) -> float:
    """The largest difference, relative to the largest value; infinite where something is not a number."""
    difference = (found.double() - right.double()).abs().max() / right.double().abs().max()
    return float("inf") if bool(difference.isnan()) else float(difference)
