"""The peaks of a device, measured as steps are: bytes copied and read, and matrix products, a second.

Run before an engine is opened: it allocates memory. CPU figures are of one thread, by its CPU time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from calibrate.decoder.engine.streams import CpuStream, CudaStream, ExecutionStream, event
from calibrate.decoder.model.decoder import torch_dtype
from calibrate.models.decoder_shape import DType

REPEATS = 7
WARM_UP = 0.2
"""Seconds of launches before a GPU is timed: idle ones have been seen at 345 MHz."""
LONG_ENOUGH = 0.005
"""Seconds between two events on a GPU, at least: as many launches as that takes."""
HOLD_CYCLES = 4_000_000
"""Cycles for which a stream is held, 2 to 3 ms, so that launches are queued before the first event."""
Ceilings = dict[str, float]


def ceilings(
    device: torch.device,
    dtype: DType,
    threads: int = 1,
    read_state: Callable[[], dict[str, Any]] = dict,
    state: Callable[[dict[str, Any]], None] = lambda _: None,
) -> Ceilings:
    """`copy_bytes_per_s` (read and written), `read_bytes_per_s` and `matrix_flop_per_s` of a device in a dtype.

    The read bandwidth is the best of a copy, a sum, and on a GPU a read by a Triton kernel; each is there by itself.
    `state` is called with what `read_state` reads while matrix products run.
    """
    on_gpu = device.type == "cuda"
    stream: ExecutionStream = CudaStream(device) if on_gpu else CpuStream(threads)
    size, side = (1 << 32, 8192) if on_gpu else (1 << 26, 512)
    try:
        return stream.do(partial(measured, device, dtype, size, side, lambda: state(read_state())))
    finally:
        stream.close()
        if on_gpu:
            torch.cuda.empty_cache()


def measured(
    device: torch.device, dtype: DType, size: int, side: int, meanwhile: Callable[[], None] = lambda: None
) -> Ceilings:
    """The figures, from buffers of `size` bytes and matrices of `side` rows."""
    kind = torch_dtype(dtype)
    stream = torch.Generator(device).manual_seed(0)
    source = torch.empty(size // 4, dtype=torch.float32, device=device).normal_(generator=stream)
    target = torch.empty_like(source)
    found = {"copy_bytes_per_s": 2 * size / seconds(device, partial(target.copy_, source))}
    del target
    found["sum_bytes_per_s"] = size / seconds(device, source.sum)
    if device.type == "cuda":
        found["triton_bytes_per_s"] = size / seconds(device, triton_read(source))
    found["read_bytes_per_s"] = max(found.values())
    left, right = (torch.empty(side, side, dtype=kind, device=device).normal_(generator=stream) for _ in range(2))
    multiply = partial(torch.matmul, left, right)
    found["matrix_flop_per_s"] = 2 * side**3 / seconds(device, multiply)
    if device.type == "cuda":
        for _ in range(100):
            multiply()
        meanwhile()
    return found


def triton_read(source: Tensor) -> Callable[[], object]:
    """A read of all of a buffer by a Triton kernel, whose sums are kept."""
    from calibrate.hardware.read_kernel import ELEMENTS, read_blocks

    sums = torch.empty(source.numel() // ELEMENTS, dtype=torch.float32, device=source.device)
    return lambda: read_blocks[(len(sums),)](source, sums, block_size=ELEMENTS, num_warps=8)


def seconds(device: torch.device, action: Callable[[], object]) -> float:
    """The median time of an action: by events on a GPU, by the CPU time of this thread elsewhere.

    A GPU is warmed up first, its stream is held while launches are queued, and short actions are launched many
    times between two events.
    """
    if device.type != "cuda":
        return float(np.median([on_cpu(action) for _ in range(REPEATS + 1)][1:]))
    began, launches = time.perf_counter(), 0
    while time.perf_counter() - began < WARM_UP:
        action()
        torch.cuda.current_stream().synchronize()
        launches += 1
    each = (time.perf_counter() - began) / launches
    times = max(1, min(1000, round(LONG_ENOUGH / each)))
    return float(np.median([between_events(action, times) for _ in range(REPEATS)]))


def between_events(action: Callable[[], object], times: int) -> float:
    """Seconds of an action on a GPU, the mean of so many launches between two events, none of them waited for."""
    start, end = event(timing=True), event(timing=True)
    torch.cuda._sleep(HOLD_CYCLES)  # type: ignore[no-untyped-call]
    start.record()
    for _ in range(times):
        action()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / 1e3 / times


def on_cpu(action: Callable[[], object]) -> float:
    """Seconds of CPU time of this thread."""
    began = time.thread_time_ns()
    action()
    return (time.thread_time_ns() - began) / 1e9
