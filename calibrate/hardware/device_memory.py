"""How the memory of a device is divided: weights, what a step needs for the moment, and the rest in pages.

Counts bytes from the shape alone; imports no torch. The sizes of a step follow `calibrate.decoder.model.decoder`:
what is alive at once between two matrix products.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from calibrate.decoder.engine.protocol import CannotRun
from calibrate.models.decoder_shape import BYTES, DType, ModelShape

GIB = 1 << 30
GPU_LIBRARIES = GIB
"""Bytes kept free on a GPU for what cuBLAS takes and what the allocator rounds up."""


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes by use, within `limit`: a stated fraction of what the device has.

    weights     of the model, rotary table included
    step        most that one step needs beside them
    graphs      for captured decodes: what the largest needs, and the scores that each keeps
    tokens      ids of the tokens of the requests, at most as many as there are slots at first
    libraries   for workspaces of libraries and the rounding of allocations
    pages       how many pages of `page_bytes` fit in the rest, or fewer if fewer were asked for
    """

    limit: int
    weights: int
    step: int
    graphs: int
    tokens: int
    libraries: int
    pages: int
    page_bytes: int

    @property
    def planned(self) -> int:
        """Bytes in use at most."""
        fixed = self.weights + self.step + self.graphs + self.tokens + self.libraries
        return fixed + (self.pages + 1) * self.page_bytes


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
    longest: int,
    buckets: tuple[int, ...] = (),
    workspace: int = 0,
    libraries: int = 0,
) -> MemoryPlan:
    """Divide a fraction of the device's memory.

    A step computes at most `token_budget` positions and brings at most `slots` tokens; `buckets` are the batches
    whose decodes are captured, `workspace` what the attention backend keeps, `libraries` what others do. Without
    `pages`, as many as fit, but no more than all slots can use.
    Raises CannotRun if there is not a page for every slot, or not as many as asked for.
    """
    limit = int(device_bytes * fraction)
    page_bytes = page_size * shape.kv_bytes_per_token(dtype)
    weights = shape.weight_bytes(dtype) + longest * shape.head_size * 4
    step = step_bytes(shape, dtype, max(token_budget, slots), slots) + workspace
    graphs = max((step_bytes(shape, dtype, rows, rows) for rows in buckets), default=0)
    graphs += sum(buckets) * shape.vocabulary * BYTES[dtype]
    tokens = (max(64, 2 * slots) + 64) * (longest + 1) * 4
    momentary = step + graphs + tokens + libraries
    fit = max(0, (limit - weights - momentary) // page_bytes - 1)
    wanted = min(fit, slots * -(-longest // page_size)) if pages is None else pages
    if wanted > fit or fit < slots:
        raise CannotRun(
            f"model {shape.name}: {size(weights)} of weights and {size(momentary)} for a step leave "
            f"room for {fit} pages of {size(page_bytes)} within {fraction:g} of the {size(device_bytes)} that the "
            f"device has; expected at least {max(slots, pages or 0)}"
        )
    return MemoryPlan(limit, weights, step, graphs, tokens, libraries, wanted, page_bytes)


def step_bytes(shape: ModelShape, dtype: DType, tokens: int, yields: int) -> int:
    """Most bytes alive at once in a step of so many positions, of which so many bring a token.

    Beside residual stream and its norm: in the attention, projections, what is rotated in float32, and the answers;
    in the MLP, gate and up, their product and its operands; at the end, scores, and their softmax in float32.
    """
    width = BYTES[dtype]
    heads = shape.query_width + 2 * shape.kv_width
    attention = heads * (2 * width + 12) + 2 * shape.query_width * width
    mlp = 4 * shape.intermediate * width
    stream = shape.hidden * (3 * width + 8)
    scores = yields * shape.vocabulary * (width + 12)
    return max(tokens * (stream + max(attention, mlp)), tokens * stream + scores) + tokens * 64


def host_bytes(groups: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes of memory this process may use on the host: what is there, or what its control group allows.

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


def size(number: int) -> str:
    """Bytes as people read them."""
    if number >= GIB / 10:
        return f"{number / GIB:.1f} GiB"
    return f"{number / (1 << 20):.1f} MiB"
