"""A Triton kernel that reads a buffer once: an upper bound of what a kernel of this kind can read a second."""

# mypy: disable-error-code="no-untyped-def, misc, untyped-decorator"

from __future__ import annotations

import triton
import triton.language as tl

ELEMENTS = 8192
"""Of one block."""


@triton.jit
def read_blocks(source, sums, block_size: tl.constexpr):
    """The sum of one block of float32."""
    block = tl.program_id(0).to(tl.int64)
    numbers = tl.load(source + block * block_size + tl.arange(0, block_size))
    tl.store(sums + block, tl.sum(numbers, 0))
