"""A fitted roofline read as bandwidths and rates, and carried to another model on the same device by shape.

What the device does per byte and per operation stays; bytes and operations are the other model's. Host time does not
carry: it is the engine's, its client's and the model's number of layers, and is better fitted on one run. A step that
was limited by something else than bytes or operations (launches, small matrices) does not carry either.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from calibrate.anatomy import BYTES, Anatomy
from calibrate.devices import Device
from sim.cost import Roofline

ALL = 1e9
"""Tokens that touch every expert."""


@dataclass(frozen=True)
class Attained:
    """One coefficient as what the device attained: bytes/s or FLOP/s, and that of the data sheet (0: not known)."""

    term: str
    what: str
    value: float
    sheet: float


def attained(cost: Roofline, model: Anatomy, device: Device | None, dtype: str = "bfloat16") -> list[Attained]:
    """The physical coefficients of a dense model on one device, beside its data sheet; those at 0 are left out."""
    cache = model.cache_dtype(dtype, None)
    amounts = {
        "weight_pass": ("weights read, B/s", model.read(ALL) * BYTES[dtype], None),
        "per_token": ("matrix products, FLOP/s", 2 * model.multiplied, dtype),
        "per_context_token": ("cache read, B/s", model.kv_values() * BYTES[cache], None),
        "per_chunk_work": ("attention of prompts, FLOP/s", model.pair_flops, cache),
    }
    found = []
    for term, (what, amount, multiplied) in amounts.items():
        nanoseconds = getattr(cost, term)
        if nanoseconds:
            sheet = 0.0 if device is None else device.arithmetic(multiplied) if multiplied else device.bandwidth
            found.append(Attained(term, what, amount / nanoseconds * 1e9, sheet))
    return found


def carried(cost: Roofline, source: Anatomy, target: Anatomy) -> Roofline:
    """The roofline of another model in the same dtype on the same device, by the ratios of bytes and operations.

    host, per_sequence and per_chunk stay as they are. Raises ValueError for mixtures of experts and windows, which
    have not this form.
    """
    for model in (source, target):
        if model.experts or model.window:
            raise ValueError(
                f"{model.name} has experts or a window; expected a dense model that attends to everything"
            )
    return replace(
        cost,
        weight_pass=cost.weight_pass * target.read(ALL) / source.read(ALL),
        per_token=cost.per_token * target.multiplied / source.multiplied,
        per_context_token=cost.per_context_token * target.kv_values() / source.kv_values(),
        per_chunk_work=cost.per_chunk_work * target.pair_flops / source.pair_flops,
    )
