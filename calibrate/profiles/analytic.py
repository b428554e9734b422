"""Costs from shapes alone, as a roofline, as a table, and as a profile with the host time of an engine.

    step = host + products(tokens) + kernels + all-reduces(tokens) + attention + sequences

The terms are those of `calibrate.profiles.shapes`. No run is measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from calibrate.hardware.devices import Device
from calibrate.hardware.memory_plan import capacity
from calibrate.models.architecture import Architecture
from calibrate.profiles.host_time import CURRENT, HostTime
from calibrate.profiles.profile import Profile, profile
from calibrate.profiles.shapes import Shapes, shapes
from sim.cost.forms import Roofline

ALL = 1e9
"""Tokens that touch every expert."""
TOKENS = tuple(sorted({round(2 ** (half / 2)) for half in range(30)}))
"""Sizes at which a table is laid out: 1 to 23,170 tokens, two in each octave."""


def roofline(of: Shapes) -> Roofline:
    """The roofline of a model on its devices, without all-reduces; of a mixture, with all experts read.

    `host` has the kernels' own durations: what a step takes that neither tokens nor contexts change.
    """
    return Roofline(
        host=of.kernels_ns + of.attention_ns,
        weight_pass=of.weights_ns(ALL),
        per_token=of.per_token,
        per_context_token=of.per_context_token,
        per_chunk_work=of.per_chunk_work,
        per_sequence=of.per_sequence,
        **of_kernels(of),
    )


def of_kernels(of: Shapes) -> dict[str, Any]:
    """The terms that follow from how attention kernels divide their work, without those that are 0."""
    terms: dict[str, Any] = {"per_mixed_context_token": six_digits(of.per_mixed_context_token)}
    if of.per_tail_token:
        terms |= {"per_tail_token": six_digits(of.per_tail_token), "unsplit": of.unsplit}
    return {name: value for name, value in terms.items() if value}


def table(of: Shapes) -> dict[str, Any]:
    """The content of a table: by tokens, with the experts that they touch and two all-reduces a layer."""
    flat = {"at": [1], "ns": [0.0], "per_position": [0.0]}
    terms = {
        "per_context_token": of.per_context_token,
        "per_chunk_work": of.per_chunk_work,
        "per_sequence": of.per_sequence,
    }
    return {
        "dense": {"at": list(TOKENS), "ns": [six_digits(of.dense_ns(tokens)) for tokens in TOKENS]},
        "decode": {**flat, "ns": [six_digits(of.attention_ns)]},
        "chunk": flat,
        **{name: six_digits(value) for name, value in terms.items()},
        **of_kernels(of),
    }


def six_digits(value: float) -> float:
    """Six digits are more than is known."""
    return float(f"{value:.6g}")


def from_shapes(
    model: Architecture,
    device: Device,
    *,
    name: str = "from-shapes",
    date: str,
    dtype: str | None = None,
    kv_dtype: str | None = None,
    tensor_parallel: int = 1,
    given: Mapping[str, float] | None = None,
    context: float | None = None,
    host: HostTime = CURRENT,
    utilization: float = 0.9,
) -> Profile:
    """A profile from shapes alone, with the host time of an engine; `given` replace attained efficiencies.

    Raises ValueError for a model that does not fit, and as `Shapes`.
    """
    of = shapes(
        model, device, dtype=dtype, kv_dtype=kv_dtype, given=given, context=context,
        tensor_parallel=tensor_parallel,
    )  # fmt: skip
    capacity(
        model,
        device.memory,
        dtype=of.dtype,
        kv_dtype=of.cache,
        utilization=utilization,
        tensor_parallel=tensor_parallel,
    )
    content = table(of)
    content |= {
        "per_sequence": six_digits(content["per_sequence"] + host.per_sequence),
        "prompt_launches": six_digits(host.launches_ns(model.layers, tensor_parallel)),
        "host": host.likely,
    }
    return profile(
        {"table": {key: value for key, value in content.items() if value}},
        name=name,
        device=device.name,
        memory=int(device.memory),
        model=model.described(),
        dtype=of.dtype,
        tensor_parallel=tensor_parallel,
        date=date,
        method="From shapes alone: bytes over bandwidth and operations over rate, at stated efficiencies, and the "
        f"host time of {host.engine}. Nothing of it is measured on a run.",
        source=device.source,
        not_included=[
            *([] if host.likely else ["host time between steps"]),
            *([] if device.multiprocessors else ["the longest of uneven contexts: multiprocessors are not known"]),
            *(["uneven experts: all are taken to be equally likely"] if model.experts else []),
            *(["expanding the latents of earlier chunks again for each chunk"] if model.kv_rank else []),
        ],
        details={
            "efficiency": asdict(of.efficiency),
            "bandwidth": device.bandwidth,
            "rate": device.arithmetic(of.dtype),
            "link": device.link,
            "kv_dtype": of.cache,
            "mean_context": context,
            "host": host.described(),
        },
    )
