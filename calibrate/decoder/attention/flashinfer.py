"""Attention by FlashInfer, where it is installed: the page tables in its format, planned once a pass."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import flashinfer
import torch
from torch import Tensor

from calibrate.decoder.model.attention_metadata import AttentionMetadata
from calibrate.models.decoder_shape import ModelShape

WORKSPACE = 128 << 20
"""Bytes of workspace that FlashInfer's documentation recommends."""
TENSOR_CORES_FROM = 4
"""Query heads of a key head from which its decode uses tensor cores, which are "faster for large group size"."""


class FlashInferAttention:
    """The backend `flashinfer`: its batch-decode wrapper for the decodes of a pass, its prefill one for chunks."""

    capturable = False
    """It plans on the host for the lengths of each pass."""

    def __init__(self, shape: ModelShape, dtype: torch.dtype, device: torch.device) -> None:
        self.shape = shape
        self.dtype = dtype
        scratch = torch.empty(WORKSPACE, dtype=torch.uint8, device=device)
        grouped = shape.heads // shape.kv_heads >= TENSOR_CORES_FROM
        self.decoding = flashinfer.BatchDecodeWithPagedKVCacheWrapper(
            scratch, kv_layout="HND", use_tensor_cores=grouped
        )
        self.computing = flashinfer.BatchPrefillWithPagedKVCacheWrapper(scratch, kv_layout="HND")

    def workspace_bytes(self, tokens: int, max_model_len: int) -> int:
        """Bytes of its workspace, the same for every step."""
        return WORKSPACE

    def prepare(self, batch: AttentionMetadata) -> None:
        """Plan a pass: the queries and pages of each row, and the number of positions in its last page."""
        decodes = batch.decodes
        heads = (self.shape.heads, self.shape.kv_heads, self.shape.head_size, batch.page_size)
        if decodes:
            pages = paged(batch.tables[:decodes], batch.spans[:decodes], batch.page_size)
            self.decoding.plan(*pages, *heads, q_data_type=self.dtype)
        if counts := batch.counts[decodes:]:
            queries = torch.tensor([0, *accumulate(counts)], dtype=torch.int32)
            pages = paged(batch.tables[decodes:], batch.spans[decodes:], batch.page_size)
            self.computing.plan(queries, *pages, *heads, causal=True, q_data_type=self.dtype)

    def __call__(self, queries: Tensor, keys: Tensor, values: Tensor, batch: AttentionMetadata) -> Tensor:
        """Causal attention of (tokens, heads, head_size) queries to paged keys and values."""
        decodes, queries = batch.decodes, queries.contiguous()
        out = torch.empty_like(queries)
        if decodes:
            out[:decodes] = self.decoding.run(queries[:decodes], (keys, values))
        if decodes < len(batch.counts):
            out[decodes:] = self.computing.run(queries[decodes:], (keys, values))
        return out


def paged(tables: Tensor, spans: Sequence[int], page_size: int) -> tuple[Tensor, Tensor, Tensor]:
    """FlashInfer's three arrays of rows: where the pages of each begin, all pages, and what the last ones hold."""
    used = [-(-span // page_size) for span in spans]
    last = [span - (pages - 1) * page_size for span, pages in zip(spans, used, strict=True)]
    where = tables.device
    columns = torch.arange(tables.shape[1], device=where)
    return (
        torch.tensor([0, *accumulate(used)], dtype=torch.int32),
        tables[columns < torch.tensor(used, device=where)[:, None]],
        torch.tensor(last, dtype=torch.int32),
    )
