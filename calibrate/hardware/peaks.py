"""The peaks of a device, measured as steps are: bytes copied and read, and matrix products, a second.

Run before an engine is opened: it allocates memory. CPU figures are of one thread, by its CPU time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch

from calibrate.decoder.engine.streams import CpuStream, CudaStream, ExecutionStream
from calibrate.decoder.model.decoder import torch_dtype
from calibrate.models.architecture import BYTES
from calibrate.models.decoder_shape import DType

REPEATS = 7
Ceilings = dict[str, float]


def ceilings(device: torch.device, dtype: DType, threads: int = 1) -> Ceilings:
    """`copy_bytes_per_s` (read and written), `read_bytes_per_s` and `matrix_flop_per_s` of a device in a dtype."""
    on_gpu = device.type == "cuda"
    stream: ExecutionStream = CudaStream(device) if on_gpu else CpuStream(threads)
    try:
        return stream.do(partial(measured, device, dtype, 1 << 30 if on_gpu else 1 << 26, 8192 if on_gpu else 512))
    finally:
        stream.close()
        if on_gpu:
            torch.cuda.empty_cache()


def measured(device: torch.device, dtype: DType, size: int, side: int) -> Ceilings:
    """The figures, from buffers of `size` bytes and matrices of `side` rows."""
    kind = torch_dtype(dtype)
    stream = torch.Generator(device).manual_seed(0)
    elements = size // BYTES[dtype]
    source = torch.empty(elements, dtype=kind, device=device).normal_(generator=stream)
    target = torch.empty_like(source)
    copied = seconds(device, partial(target.copy_, source))
    read = seconds(device, source.sum)
    left, right = (torch.empty(side, side, dtype=kind, device=device).normal_(generator=stream) for _ in range(2))
    multiplied = seconds(device, partial(torch.matmul, left, right))
    return {
        "copy_bytes_per_s": 2 * elements * BYTES[dtype] / copied,
        "read_bytes_per_s": elements * BYTES[dtype] / read,
        "matrix_flop_per_s": 2 * side**3 / multiplied,
    }


def seconds(device: torch.device, action: Callable[[], object]) -> float:
    """The median time of an action: by events on a GPU, by the CPU time of this thread elsewhere."""
    times = []
    for _ in range(REPEATS + 1):
        if device.type == "cuda":
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
            start.record()
            action()
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end) / 1e3)
        else:
            began = time.thread_time_ns()
            action()
            times.append((time.thread_time_ns() - began) / 1e9)
    return float(np.median(times[1:]))
