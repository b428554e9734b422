"""Attention in PyTorch: the pages of one sequence are gathered, cut to its length, and attended to.

The reference for the other backends, on CPU and GPU. One sequence at a time: exact, not fast. Cutting to the
length, rather than masking, keeps values in unused places out even where they are NaN.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from calibrate.decoder.model.attention_metadata import AttentionMetadata
from calibrate.models.decoder_shape import ModelShape


class TorchAttention:
    """The backend `torch`."""

    capturable = False
    """It reads lengths on the host, so a captured graph would keep those of its capture."""

    def __init__(self, shape: ModelShape, width: int) -> None:
        """For a shape whose keys and values are `width` bytes each."""
        self.shape = shape
        self.width = width

    def workspace_bytes(self, tokens: int, max_model_len: int) -> int:
        """Bytes of one sequence's keys and values, gathered and copied, and of the mask of its chunk, twice."""
        copies = 2 * max_model_len * self.shape.kv_width * self.width
        return 2 * copies + min(tokens, max_model_len) * max_model_len * (1 + self.width)

    def prepare(self, batch: AttentionMetadata) -> None:
        """Does nothing."""

    def __call__(self, queries: Tensor, keys: Tensor, values: Tensor, batch: AttentionMetadata) -> Tensor:
        """Causal attention of (tokens, heads, head_size) queries to paged keys and values; zeros for empty rows."""
        out = torch.zeros_like(queries)
        first = 0
        for row, (count, span) in enumerate(zip(batch.counts, batch.spans, strict=True)):
            if span:
                table = batch.tables[row, : -(-span // batch.page_size)]
                mine = slice(first, first + count)
                out[mine] = one_sequence(queries[mine], gathered(keys, table, span), gathered(values, table, span))
            first += count
        return out


def gathered(cache: Tensor, table: Tensor, span: int) -> Tensor:
    """The first `span` positions of a sequence: (kv_heads, span, head_size)."""
    pages, heads, size, width = len(table), cache.shape[1], cache.shape[2], cache.shape[3]
    return cache[table].transpose(0, 1).reshape(heads, pages * size, width)[:, :span]


def one_sequence(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """The last `count` positions of a sequence attend to it: (count, heads, head_size).

    A single position needs no mask, so that its grouped heads can stand in the place of positions.
    """
    count, heads, width = queries.shape
    groups, span = keys.shape[0], keys.shape[1]
    if count == 1:
        found = scaled_dot_product_attention(
            queries.view(1, groups, heads // groups, width), keys[None], values[None]
        )
        return found.view(1, heads, width)
    shared = (groups, heads // groups, span, width)
    seen = torch.ones(count, span, dtype=torch.bool, device=queries.device).tril(span - count)
    found = scaled_dot_product_attention(
        queries.view(count, groups, heads // groups, width).permute(1, 2, 0, 3),
        keys[:, None].expand(shared),
        values[:, None].expand(shared),
        attn_mask=seen,
    )
    return found.permute(2, 0, 1, 3).reshape(count, heads, width)
