"""How many pages of KV cache fit beside a model: planned from sizes, as a serving engine divides its memory.

    pages = (memory x utilization - weights - activations - graphs - other) / bytes of a page

per device of those that share the model. An engine measures its activations; here they are counted: what one block
holds at once of the tokens of a step, and the scores of the sequences. A model that does not fit is an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor

from calibrate.models.architecture import BYTES, Anatomy

GIB = 2**30
OTHER = GIB // 2
"""Driver context, libraries' workspaces and what the allocator cannot use; half a GiB, a stated guess."""


@dataclass(frozen=True)
class Capacity:
    """Bytes on each device by use, and how many pages of `page_bytes` fit in the rest."""

    limit: float
    weights: float
    activations: float
    graphs: float
    other: float
    page_bytes: float
    pages: int


def capacity(
    model: Anatomy,
    memory: float,
    *,
    dtype: str | None = None,
    kv_dtype: str | None = None,
    utilization: float = 0.9,
    tensor_parallel: int = 1,
    page_size: int = 16,
    token_budget: int = 2048,
    slots: int = 256,
    graphs: float = 0.0,
    other: float = OTHER,
) -> Capacity:
    """What fits into `memory` bytes of each of the devices that share a model.

    `graphs`, `other` in bytes. Raises ValueError, with the numbers, for a model that leaves no room for one page,
    for heads that cannot be dealt out, and for a utilization that is no share.
    """
    if not 0 < utilization <= 1:
        raise ValueError(f"utilization is {utilization:g}; expected a number above 0 and up to 1")
    model.shared_by(tensor_parallel)
    cache, dtype = model.cache_dtype(dtype, kv_dtype), model.in_dtype(dtype)
    size = sized(dtype)
    limit = memory * utilization
    weights = model.parameters * size / tensor_parallel
    block = 2 * model.hidden + 3 * widest(model) / tensor_parallel
    activations = (
        token_budget * block * sized(model.activation_dtype(dtype)) + slots * model.vocabulary * 4 / tensor_parallel
    )
    page_bytes = model.kv_values(tensor_parallel) * sized(cache) * page_size
    rest = limit - weights - activations - graphs - other
    if rest < page_bytes:
        needed = (weights + activations + graphs + other + page_bytes) / GIB
        raise ValueError(
            f"{model.name} in {dtype} does not fit: it needs {needed:.1f} GiB on each of {tensor_parallel} devices "
            f"({weights / GIB:.1f} of weights), and {utilization:.0%} of {memory / GIB:.1f} GiB are "
            f"{limit / GIB:.1f}{hint(model, limit, size)}"
        )
    return Capacity(limit, weights, activations, graphs, other, page_bytes, floor(rest / page_bytes))


def hint(model: Anatomy, limit: float, size: int) -> str:
    """How many devices the weights alone take, in words."""
    return f"; the weights alone take at least {ceil(model.parameters * size / limit)} such devices"


def widest(model: Anatomy) -> float:
    """Numbers of the widest layer between two matrix products, for each token."""
    routed = model.expert_width * model.experts_per_token + model.shared_width
    return max(model.intermediate if not model.experts or model.dense_layers else 0, routed)


def sized(dtype: str) -> int:
    """Bytes of a number; raises ValueError for an unknown dtype."""
    if dtype not in BYTES:
        raise ValueError(f"dtype is {dtype!r}; expected one of {', '.join(BYTES)}")
    return BYTES[dtype]
