"""The memory plan of our own decoder: weights, what one of its steps needs at once, and the rest in pages.

Counts bytes from the shape alone; imports no torch. The sizes of a step follow `calibrate.decoder.model.decoder`:
what is alive at once between two matrix products.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from calibrate.decoder.engine.protocol import CannotRun
from calibrate.hardware.devices import GIB
from calibrate.hardware.memory_plan import MemoryPlan, divided
from calibrate.models.architecture import BYTES
from calibrate.models.decoder_shape import DType, ModelShape

GPU_LIBRARIES = GIB
"""Bytes kept free on a GPU for what cuBLAS takes and what the allocator rounds up."""


def plan_memory(
    shape: ModelShape,
    dtype: DType,
    *,
    device_bytes: int,
    fraction: float,
    page_size: int,
    pages: int | None,
    token_budget: int,
    slots: int,
    max_model_len: int,
    capture_sizes: tuple[int, ...] = (),
    workspace: int = 0,
    libraries: int = 0,
) -> MemoryPlan:
    """Divide a fraction of the device's memory.

    A step computes at most `token_budget` positions and yields at most `slots` tokens; `capture_sizes` are the
    batches whose decodes are captured, `workspace` is the attention backend's and `libraries` that of libraries, in
    bytes. The plan also has the rotary table, counted with the weights, the token ids of the requests, and one page
    for padding. Without `pages`, as many as fit, but no more than all slots can use.

    Raises CannotRun if there is not a page for every slot, or not as many as requested.
    """
    tokens = (max(64, 2 * slots) + 64) * (max_model_len + 1) * 4
    page_bytes = page_size * shape.kv_bytes_per_token(dtype)
    graphs = max((step_bytes(shape, dtype, rows, rows) for rows in capture_sizes), default=0)
    most = divided(
        int(device_bytes * fraction),
        weights=shape.weight_bytes(dtype) + max_model_len * shape.head_size * 4,
        activations=step_bytes(shape, dtype, max(token_budget, slots), slots) + workspace,
        graphs=graphs + sum(capture_sizes) * shape.vocabulary * BYTES[dtype],
        other=tokens + libraries + page_bytes,
        page_bytes=page_bytes,
    )
    wanted = min(most.pages, slots * -(-max_model_len // page_size)) if pages is None else pages
    if wanted > most.pages or most.pages < slots:
        momentary = most.activations + most.graphs + tokens + libraries
        raise CannotRun(
            f"model {shape.name}: {size(most.weights)} of weights and {size(momentary)} for a step leave "
            f"room for {most.pages} pages of {size(page_bytes)} within {fraction:g} of the {size(device_bytes)} that "
            f"the device has; expected at least {max(slots, pages or 0)}"
        )
    return replace(most, pages=wanted)


def step_bytes(shape: ModelShape, dtype: DType, tokens: int, yields: int) -> int:
    """Most bytes alive at once in a step of `tokens` positions that yields `yields` tokens.

    Beside the residual stream and its norm: in the attention, projections, what is rotated in float32, and the
    output; in the MLP, gate and up, their product and its operands; at the end, logits, and their softmax in float32.
    """
    width = BYTES[dtype]
    heads = shape.query_width + 2 * shape.kv_width
    attention = heads * (2 * width + 12) + 2 * shape.query_width * width
    mlp = 4 * shape.intermediate * width
    stream = shape.hidden * (3 * width + 8)
    scores = yields * shape.vocabulary * (width + 12)
    return max(tokens * (stream + max(attention, mlp)), tokens * stream + scores) + tokens * 64


def host_bytes(groups: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes of memory that this process may use on the host: what the machine has, or what its control group allows.

    `groups` is where the limits of a container's processes are found (Linux: memory.max of version 2, or
    memory/memory.limit_in_bytes of version 1); elsewhere there is none.
    """
    bytes_there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            told = (groups / name).read_text().strip()
        except OSError:
            continue
        if told.isdecimal():
            bytes_there = min(bytes_there, int(told))
    return bytes_there


def size(number: float) -> str:
    """Bytes in GiB or MiB, for a message."""
    if number >= GIB / 10:
        return f"{number / GIB:.1f} GiB"
    return f"{number / (1 << 20):.1f} MiB"
