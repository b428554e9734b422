"""The matrix products of one layer's decode and of the head, alone: bytes of weights a second, by batch.

Weights are rotated over several copies, so that a GPU's cache holds none of them. What is below the bandwidth of a
read is what another tiling of that product (split-K, for those with few columns) could gain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch.nn.functional import linear

from calibrate.decoder.engine.cuda_graphs import captured
from calibrate.decoder.engine.streams import CpuStream, CudaStream, ExecutionStream
from calibrate.decoder.model.decoder import torch_dtype
from calibrate.gpu.kernel_bench import cache_bytes
from calibrate.hardware.peaks import seconds
from calibrate.models.decoder_shape import DType, ModelShape

OF_THE_CACHE = 4
"""Times the size of a GPU's last cache that the copies of a product's weights have together, at least."""


def products(shape: ModelShape) -> dict[str, tuple[int, int]]:
    """(outputs, inputs) of each product of a step."""
    return {
        "qkv": (shape.query_width + 2 * shape.kv_width, shape.hidden),
        "out": (shape.hidden, shape.query_width),
        "gate_up": (2 * shape.intermediate, shape.hidden),
        "down": (shape.hidden, shape.intermediate),
        "head": (shape.vocabulary, shape.hidden),
    }


def product_bench(
    shape: ModelShape, device: torch.device, dtype: DType, batches: Sequence[int]
) -> Iterator[dict[str, Any]]:
    """Seconds of each product at each batch, and bytes of its weights a second."""
    stream: ExecutionStream = CudaStream(device) if device.type == "cuda" else CpuStream(1)
    try:
        for name, sizes in products(shape).items():
            for rows in batches:
                about = {"product": name, "outputs": sizes[0], "inputs": sizes[1], "batch": rows}
                try:
                    took = stream.do(partial(seconds_of, device, torch_dtype(dtype), *sizes, rows))
                except torch.OutOfMemoryError as error:
                    yield {**about, "skipped": str(error).partition("\n")[0]}
                    continue
                moved = sizes[0] * sizes[1] * torch_dtype(dtype).itemsize
                yield {**about, "seconds": took, "bytes_per_s": moved / took}
    finally:
        stream.close()


def seconds_of(device: torch.device, dtype: torch.dtype, outputs: int, inputs: int, rows: int) -> float:
    """Median seconds of one product of `rows` inputs."""
    copies = 1 + OF_THE_CACHE * cache_bytes(device) // (outputs * inputs * dtype.itemsize)
    stream = torch.Generator(device).manual_seed(0)
    weights = torch.randn(copies, outputs, inputs, dtype=dtype, device=device, generator=stream)
    x = torch.randn(rows, inputs, dtype=dtype, device=device, generator=stream)

    def all_copies() -> None:
        for weight in weights:
            linear(x, weight)

    return seconds(device, captured(all_copies) if device.type == "cuda" else all_copies) / copies
