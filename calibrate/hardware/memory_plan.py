"""How the memory of a device is divided: weights, what a step needs, captured graphs, and the rest in pages.

    pages = (memory x utilization - weights - activations - graphs - other) / bytes of a page

per device of those that share the model. `capacity` counts it from a model's sizes, as a serving engine divides its
memory; `calibrate.hardware.device_memory` counts it for our own decoder.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor

from calibrate.hardware.devices import GIB
from calibrate.models.architecture import Architecture, dtype_bytes

OTHER = GIB // 2
"""Bytes for the driver's context, workspaces of libraries and what the allocator cannot use; an assumption."""


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes on each device by use, within `limit`, and how many pages of `page_bytes` there are.

    weights      of the model
    activations  most that one step needs beside them
    graphs       for captured decodes
    other        driver, libraries and what else is kept
    """

    limit: float
    weights: float
    activations: float
    graphs: float
    other: float
    page_bytes: float
    pages: int

    @property
    def planned(self) -> float:
        """Bytes in use at most."""
        return self.weights + self.activations + self.graphs + self.other + self.pages * self.page_bytes


def divided(
    limit: float, *, weights: float, activations: float, graphs: float, other: float, page_bytes: float
) -> MemoryPlan:
    """The plan with as many pages as fit into the rest of `limit` bytes, none if there is no rest."""
    rest = limit - weights - activations - graphs - other
    return MemoryPlan(limit, weights, activations, graphs, other, page_bytes, max(0, floor(rest / page_bytes)))


@dataclass(frozen=True)
class Beside:
    """What drafts tokens beside a model, on each device: bytes of weights, and of the KV memory of a position."""

    weights: float = 0.0
    per_position: float = 0.0


def draft_model(
    model: Architecture, *, dtype: str | None, kv_dtype: str | None, weights: float | None, tensor_parallel: int
) -> Beside:
    """A draft model; `weights` in bytes on each device, None: its parameters in `dtype`."""
    cache, dtype = model.cache_dtype(dtype, kv_dtype), model.in_dtype(dtype)
    held = model.parameters * dtype_bytes(dtype) / tensor_parallel if weights is None else weights
    return Beside(held, model.kv_values(tensor_parallel) * dtype_bytes(cache))


def capacity(
    model: Architecture,
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
    weights: float | None = None,
    heads: int = 0,
    beside: Beside = Beside(),
) -> MemoryPlan:
    """The plan for `memory` bytes of each of the devices that share a model.

    An engine measures its activations; here they are counted: what one block holds at once of the tokens of a step,
    and the logits of the sequences. `graphs` and `other` are in bytes, and so is `weights` on each device; None: the
    model's parameters in `dtype`. Heads that draft tokens count as `heads` layers more; a draft model is `beside`.
    Raises ValueError, with the numbers, for a model that leaves no room for one page, for heads that the devices
    cannot share, and for a utilization outside (0, 1].
    """
    if not 0 < utilization <= 1:
        raise ValueError(f"utilization is {utilization:g}; expected a number above 0 and up to 1")
    model.shared_by(tensor_parallel)
    cache, dtype = model.cache_dtype(dtype, kv_dtype), model.in_dtype(dtype)
    size = dtype_bytes(dtype)
    limit = memory * utilization
    named = model.name if weights is not None else f"{model.name} in {dtype}"
    if weights is None:
        weights = model.parameters * size / tensor_parallel
    weights = weights * (1 + heads / model.layers) + beside.weights
    block = 2 * model.hidden + 3 * widest(model) / tensor_parallel
    activations = (
        token_budget * block * dtype_bytes(model.activation_dtype(dtype))
        + slots * model.vocabulary * 4 / tensor_parallel
    )
    own = model.kv_values(tensor_parallel) * dtype_bytes(cache) * (1 + heads / model.layers)
    page_bytes = (own + beside.per_position) * page_size
    plan = divided(limit, weights=weights, activations=activations, graphs=graphs, other=other, page_bytes=page_bytes)
    if not plan.pages:
        needed = (plan.planned + page_bytes) / GIB
        raise ValueError(
            f"{named} does not fit: it needs {needed:.1f} GiB on each of {tensor_parallel} devices "
            f"({weights / GIB:.1f} of weights), and {utilization:.0%} of {memory / GIB:.1f} GiB are "
            f"{limit / GIB:.1f}; the weights alone take at least {ceil(weights * tensor_parallel / limit)} such "
            "devices"
        )
    return plan


def widest(model: Architecture) -> float:
    """Numbers of the widest layer between two matrix products, for each token."""
    routed = model.expert_width * model.experts_per_token + model.shared_width
    return max(model.intermediate if not model.experts or model.dense_layers else 0, routed)
