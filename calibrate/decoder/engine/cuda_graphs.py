"""Decode steps of a fixed batch: inputs at fixed addresses, so that a GPU's launches can be captured once.

A step with fewer rows is padded to the next capture size. Rows of padding have no length and write to the spare page;
their cost is part of what is measured, as it is part of what an engine pays.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor

from calibrate.decoder.model.attention_metadata import AttentionMetadata
from calibrate.decoder.model.decoder import Decoder

if TYPE_CHECKING:
    from torch.cuda import _POOL_HANDLE  # a name of newer versions of PyTorch

STEPS = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 160, 192, 224, 256)
WARM_UPS = 2
T = TypeVar("T")


def default_capture_sizes(slots: int) -> tuple[int, ...]:
    """Batch sizes to capture: dense where one more row costs most, and `slots` itself."""
    above = range(STEPS[-1] + 64, slots, 64)
    return (*(step for step in (*STEPS, *above) if step < slots), slots)


class PaddedDecode:
    """The decode of one capture size: inputs are copied to fixed addresses, and the same launches follow.

    On a GPU they are captured as a CUDA graph (`pool`: memory that graphs may share); on a CPU they are called.
    """

    def __init__(
        self, decoder: Decoder, rows: int, width: int, page_size: int, pool: _POOL_HANDLE | None = None
    ) -> None:
        cache = decoder.cache.data
        device = cache.device
        self.page_size = page_size
        self.tokens = torch.zeros(rows, dtype=torch.int32, device=device)
        self.positions = torch.zeros(rows, dtype=torch.int32, device=device)
        self.lengths = torch.zeros(rows, dtype=torch.int32, device=device)
        self.owners = torch.arange(rows, dtype=torch.int32, device=device)
        self.tables = torch.full((rows, width), decoder.cache.spare, dtype=torch.int32, device=device)
        self.offsets = torch.zeros(1, dtype=torch.int32, device=device)
        self.decoder = decoder
        self.rows = rows
        self.run = captured(self.launch, pool) if device.type == "cuda" else self.launch

    def __call__(self, tokens: Tensor, batch: AttentionMetadata) -> Tensor:
        """Scores of the next token of every row, padding included; they stay until the next call."""
        self.tokens.copy_(tokens)
        self.positions.copy_(batch.positions)
        self.lengths.copy_(batch.lengths)
        self.tables[:, : batch.tables.shape[1]].copy_(batch.tables)
        return self.run()

    def launch(self) -> Tensor:
        """The forward pass over the inputs at their addresses."""
        batch = AttentionMetadata(
            tables=self.tables,
            lengths=self.lengths,
            positions=self.positions,
            owners=self.owners,
            offsets=self.offsets,
            counts=(1,) * self.rows,
            spans=(),
            page_size=self.page_size,
            decodes=self.rows,
        )
        return self.decoder.logits(self.tokens, batch)


def captured(launch: Callable[[], T], pool: _POOL_HANDLE | None = None) -> Callable[[], T]:
    """The launches on a GPU's current stream as a graph, after warm-up calls that compile kernels.

    Calling the result replays them; what it returns is overwritten by the next call.
    """
    for _ in range(WARM_UPS):
        launch()
    stream = torch.cuda.current_stream()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool, stream=stream):
        found = launch()

    def replay() -> T:
        graph.replay()
        return found

    return replay


class PaddedDecodes:
    """A `PaddedDecode` for each capture size, the largest first, so that the smaller ones reuse its memory."""

    def __init__(self, decoder: Decoder, capture_sizes: Sequence[int], width: int, page_size: int) -> None:
        pool = torch.cuda.graph_pool_handle() if decoder.cache.data.is_cuda else None
        self.capture_sizes = sorted(capture_sizes)
        self.decodes = {
            rows: PaddedDecode(decoder, rows, width, page_size, pool) for rows in reversed(self.capture_sizes)
        }

    def capture_size(self, rows: int) -> int | None:
        """The smallest capture size of at least `rows`; None: there is none."""
        place = bisect_left(self.capture_sizes, rows)
        return self.capture_sizes[place] if place < len(self.capture_sizes) else None
