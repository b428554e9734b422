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

from calibrate.decoder.engine.forward import ForwardPass
from calibrate.decoder.engine.input_batch import Layout, unpacked

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
    """The decode of one capture size: its packed inputs are copied to fixed addresses, and the same launches follow.

    They read the tokens of the rows, compute, choose the next tokens and store them. On a GPU they are captured as a
    CUDA graph (`pool`: memory that graphs may share), and again when the store of tokens has moved; on a CPU they are
    called.
    """

    def __init__(
        self, forward: ForwardPass, rows: int, width: int, page_size: int, pool: _POOL_HANDLE | None = None
    ) -> None:
        device = forward.decoder.cache.data.device
        self.layout = Layout((1,) * rows, (), rows, width, tuple(range(rows)))
        self.page_size = page_size
        self.packed = torch.zeros(sum(self.layout.sizes), dtype=torch.int32, device=device)
        self.forward = forward
        self.pool = pool
        self.captured_store: Tensor | None = None
        self.run = self.launch
        self.pad()
        if device.type == "cuda":
            self.capture()

    def __call__(self, packed: Tensor, layout: Layout) -> Tensor:
        """The next token of every row of a packed step, padding included; they stay until the next call."""
        if self.packed.is_cuda and self.captured_store is not self.forward.store.tokens:
            self.capture()
        rows, fixed = self.layout.rows, len(self.packed) - self.layout.sizes[-1]
        self.packed[:fixed].copy_(packed[:fixed])
        self.tables[:, : layout.width].copy_(packed[fixed:].view(rows, layout.width))
        return self.run()

    @property
    def tables(self) -> Tensor:
        """The page table at its address, as wide as the longest sequence needs."""
        return self.packed[-self.layout.sizes[-1] :].view(self.layout.rows, self.layout.width)

    def pad(self) -> None:
        """Make every row one of padding."""
        _, owners, *_ = torch.split(self.packed.zero_(), self.layout.sizes)
        owners.copy_(torch.arange(self.layout.rows))
        self.tables.fill_(self.forward.decoder.cache.spare)

    def capture(self) -> None:
        """Capture the launches for the present store of tokens, whose memory is kept as long as the graph."""
        self.pad()
        self.captured_store = self.forward.store.tokens
        self.run = captured(self.launch, self.pool)

    def launch(self) -> Tensor:
        """The forward pass over the inputs at their addresses."""
        return self.forward(*unpacked(self.packed, self.layout, self.page_size))


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

    def __init__(self, forward: ForwardPass, capture_sizes: Sequence[int], width: int, page_size: int) -> None:
        pool = torch.cuda.graph_pool_handle() if forward.decoder.cache.data.is_cuda else None
        self.capture_sizes = sorted(capture_sizes)
        self.decodes = {
            rows: PaddedDecode(forward, rows, width, page_size, pool) for rows in reversed(self.capture_sizes)
        }

    def capture_size(self, rows: int) -> int | None:
        """The smallest capture size of at least `rows`; None: there is none."""
        place = bisect_left(self.capture_sizes, rows)
        return self.capture_sizes[place] if place < len(self.capture_sizes) else None
