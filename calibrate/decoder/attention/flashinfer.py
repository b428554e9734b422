"""Attention by FlashInfer, where it is installed: the page tables in its format, planned once a pass."""

from __future__ import annotations

import flashinfer
import torch
from torch import Tensor

from calibrate.decoder.model.attention_metadata import AttentionMetadata
from calibrate.models.decoder_shape import ModelShape

WORKSPACE = 128 << 20
"""Bytes of workspace that FlashInfer's documentation recommends."""


class FlashInferAttention:
    """The backend `flashinfer`: its batch-prefill wrapper, for which a decode is a chunk of one position."""

    capturable = False
    """It plans on the host for the lengths of each pass."""

    def __init__(self, shape: ModelShape, dtype: torch.dtype, device: torch.device) -> None:
        self.shape = shape
        self.dtype = dtype
        scratch = torch.empty(WORKSPACE, dtype=torch.uint8, device=device)
        self.wrapper = flashinfer.BatchPrefillWithPagedKVCacheWrapper(scratch, kv_layout="HND")

    def workspace_bytes(self, tokens: int, max_model_len: int) -> int:
        """Bytes of its workspace, the same for every step."""
        return WORKSPACE

    def prepare(self, batch: AttentionMetadata) -> None:
        """Plan a pass: the queries and pages of each row, and the number of positions in its last page."""
        queries, pages, last = [0], [0], []
        for count, span in zip(batch.counts, batch.spans, strict=True):
            used = -(-span // batch.page_size)
            queries.append(queries[-1] + count)
            pages.append(pages[-1] + used)
            last.append(span - (used - 1) * batch.page_size)
        where = batch.tables.device
        used_of_row = torch.tensor(pages, device=where).diff()
        columns = torch.arange(batch.tables.shape[1], device=where)
        self.wrapper.plan(
            torch.tensor(queries, dtype=torch.int32),
            torch.tensor(pages, dtype=torch.int32),
            batch.tables[columns < used_of_row[:, None]],
            torch.tensor(last, dtype=torch.int32),
            self.shape.heads,
            self.shape.kv_heads,
            self.shape.head_size,
            batch.page_size,
            causal=True,
            q_data_type=self.dtype,
        )

    def __call__(self, queries: Tensor, keys: Tensor, values: Tensor, batch: AttentionMetadata) -> Tensor:
        """Causal attention of (tokens, heads, head_size) queries to paged keys and values."""
        found: Tensor = self.wrapper.run(queries.contiguous(), (keys, values))
        return found
