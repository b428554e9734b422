"""Attention by our own Triton kernels: tiles, splits, workspace, and how they are launched."""

from __future__ import annotations

from math import log2, sqrt

import torch
from torch import Tensor

from calibrate.decoder.attention import triton_kernels
from calibrate.decoder.model.attention_metadata import AttentionMetadata
from calibrate.models.decoder_shape import ModelShape

LOG2_E = 1.4426950408889634
WAVES = 4
"""Programs per multiprocessor that a decode is split into, about: with 132 multiprocessors and 8 key heads a batch of
64 has no splits, and no merge.
"""
WARPS = 4
TILE = 64
"""Positions that a decode reads at a time."""
MOST_SPLITS = 64


class TritonAttention:
    """The backend `triton`.

    `rows` is the most decodes of a step: the workspace for their splits is allocated here, once, so that captured
    graphs find it where it was. `splits` fixes how often a context is split; left out, it follows from the number
    of rows, never from their lengths. `tile`, `warps` and `stages` are those of the decode kernel.

    Raises ValueError for a head size that is not a power of two, and for less than one split.
    """

    capturable = True

    def __init__(
        self,
        shape: ModelShape,
        rows: int,
        device: torch.device,
        splits: int | None = None,
        dtype_bytes: int = 2,
        tile: int = TILE,
        warps: int = WARPS,
        stages: int | None = None,
    ) -> None:
        if not is_power_of_two(shape.head_size) or shape.head_size < 16:
            raise ValueError(
                f"attention triton: head_size is {shape.head_size}; expected a power of two from 16 up "
                "(attention: torch takes any)"
            )
        if splits is not None and splits < 1:
            raise ValueError(f"attention triton: splits is {splits}; expected at least 1")
        self.shape = shape
        self.fixed = splits
        self.programs = WAVES * multiprocessors(device)
        self.tile, self.warps = tile, warps
        self.stages = loop_stages(dtype_bytes) if stages is None else stages
        self.chunk_stages = loop_stages(dtype_bytes)
        room = max((count * self.splits(count) for count in range(1, rows + 1)), default=0)
        self.parts = torch.empty(room * shape.heads * shape.head_size, dtype=torch.float32, device=device)
        self.weights = torch.empty(room * shape.heads, dtype=torch.float32, device=device)

    def splits(self, rows: int) -> int:
        """The number of parts into which each context is split in a step with `rows` decodes."""
        if self.fixed is not None:
            return self.fixed
        wanted = self.programs / (rows * self.shape.kv_heads)
        return 1 << max(0, min(round(log2(wanted)), MOST_SPLITS.bit_length() - 1))

    def workspace_bytes(self, tokens: int, max_model_len: int) -> int:
        """Bytes allocated for splits, the same for every step."""
        return (self.parts.numel() + self.weights.numel()) * self.parts.itemsize

    def prepare(self, batch: AttentionMetadata) -> None:
        """Does nothing: the kernels read the batch as it is."""

    def __call__(self, queries: Tensor, keys: Tensor, values: Tensor, batch: AttentionMetadata) -> Tensor:
        """Causal attention of (tokens, heads, head_size) queries to paged keys and values; zeros for empty rows.

        A token's row may be wider than its queries (keys and values after them): the heads must be contiguous.
        """
        out = torch.empty(queries.shape, dtype=queries.dtype, device=queries.device)
        if batch.decodes:
            self.decode(queries, keys, values, batch, out)
        if len(batch.counts) > batch.decodes:
            self.chunks(queries, keys, values, batch, out)
        return out

    def decode(self, queries: Tensor, keys: Tensor, values: Tensor, batch: AttentionMetadata, out: Tensor) -> None:
        """The rows that compute one position: splits of their contexts, then their merge."""
        rows, heads, head = batch.decodes, self.shape.heads, self.shape.head_size
        splits = self.splits(rows)
        triton_kernels.decode_splits[(rows, self.shape.kv_heads, splits)](
            queries, keys, values, batch.tables, batch.lengths, out, self.parts, self.weights,
            LOG2_E / sqrt(head), queries.stride(0), *strides(keys, values), batch.tables.stride(0),
            **decode_constants(self.shape, batch.page_size, splits, self.tile), num_warps=self.warps,
            num_stages=self.stages,
        )  # fmt: skip
        if splits > 1:
            triton_kernels.merge_splits[(rows, heads)](
                self.parts, self.weights, out, **merge_constants(self.shape, splits), num_warps=WARPS
            )

    def chunks(self, queries: Tensor, keys: Tensor, values: Tensor, batch: AttentionMetadata, out: Tensor) -> None:
        """The rows that compute several: tiles of their queries."""
        decodes, counts = batch.decodes, batch.counts[batch.decodes :]
        queries, out, tables = queries[decodes:], out[decodes:], batch.tables[decodes:]
        constants = chunk_constants(self.shape, batch.page_size)
        tiles = -(-max(counts) // constants["QUERIES"])
        triton_kernels.chunk_tiles[(tiles, self.shape.heads, len(counts))](
            queries, keys, values, tables, batch.lengths[decodes:], batch.offsets, out,
            LOG2_E / sqrt(self.shape.head_size), queries.stride(0), *strides(keys, values), tables.stride(0),
            **constants, num_warps=WARPS, num_stages=self.chunk_stages,
        )  # fmt: skip


def decode_constants(shape: ModelShape, page_size: int, splits: int, tile: int = TILE) -> dict[str, int]:
    """The constants that the decode kernel is compiled for."""
    group = shape.heads // shape.kv_heads
    return {
        "HEADS": shape.heads,
        "GROUP": group,
        "GROUP_TILE": max(16, power_of_two_from(group)),
        "HEAD": shape.head_size,
        "PAGE": page_size,
        "TILE": tile,
        "SPLITS": splits,
    }


def merge_constants(shape: ModelShape, splits: int) -> dict[str, int]:
    """The constants that the merge of splits is compiled for."""
    return {
        "HEADS": shape.heads,
        "HEAD": shape.head_size,
        "SPLITS": splits,
        "SPLIT_TILE": power_of_two_from(splits),
    }


def chunk_constants(shape: ModelShape, page_size: int) -> dict[str, int]:
    """The constants that the chunk kernel is compiled for."""
    return {
        "HEADS": shape.heads,
        "GROUP": shape.heads // shape.kv_heads,
        "HEAD": shape.head_size,
        "PAGE": page_size,
        "QUERIES": 64 if shape.head_size <= 128 else 32,
        "TILE": 64 if shape.head_size <= 128 else 32,
    }


def loop_stages(itemsize: int) -> int:
    """Pipeline stages of the kernels' loops: two of them load page numbers and wait for these.

    With five, there are two buffers each of keys and of values, so that one is filled while the other is read; with
    three there is one. Shared memory holds no more of float32 on every GPU from sm_80 on.
    """
    return 5 if itemsize < 4 else 3


def strides(keys: Tensor, values: Tensor) -> tuple[int, int, int]:
    """Elements from one page, head, place to the next, the same for keys and values."""
    assert keys.stride() == values.stride(), "keys and values lie differently"
    assert keys.stride(3) == 1, "a head does not lie in one piece"
    return keys.stride(0), keys.stride(1), keys.stride(2)


def multiprocessors(device: torch.device) -> int:
    """Multiprocessors of a GPU; 1 for a CPU, where kernels are only interpreted."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1


def is_power_of_two(number: int) -> bool:
    """Whether it is 1, 2, 4, 8, ..."""
    return number > 0 and not number & (number - 1)


def power_of_two_from(number: int) -> int:
    """The smallest power of two that is not below it."""
    return 1 << (number - 1).bit_length()
