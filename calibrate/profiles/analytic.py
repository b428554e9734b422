"""The cost of a step from shapes alone: a model's sizes, a device's data sheet, stated efficiencies. No measurement.

The weights are read once a step at the bandwidth, each token multiplied at the arithmetic rate, each cached token
read at the bandwidth, and devices that share a layer add their parts up over the link. A dense model on one device
is a roofline; experts and all-reduces do not have its form and make a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from calibrate.hardware.devices import Device
from calibrate.hardware.memory_plan import capacity
from calibrate.models.architecture import Architecture, dtype_bytes
from calibrate.profiles.profile import Profile, profile
from sim.cost.forms import Roofline

NS = 1e9
TOKENS = tuple(sorted({round(2 ** (half / 2)) for half in range(30)}))
"""Sizes at which a table is laid out: 1 to 23,170 tokens, two in each octave."""


@dataclass(frozen=True)
class Efficiency:
    """Shares of the data sheet that engines attain: bandwidth for weights and for the cache, rates, the link.

    `all_reduce_s` is the duration of the smallest all-reduce. The defaults are round numbers near those of the
    shipped profiles and of published all-reduces on eight H100s; docs/costs.md has the comparison. Raises ValueError
    for a number outside (0, 1].
    """

    weights: float = 0.8
    cache: float = 0.85
    arithmetic: float = 0.65
    attention: float = 0.5
    link: float = 0.7
    all_reduce_s: float = 15e-6

    def __post_init__(self) -> None:
        for key, value in asdict(self).items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
                raise ValueError(f"efficiency.{key} is {value!r}; expected a number above 0 and up to 1")


def roofline(
    model: Architecture,
    device: Device,
    *,
    dtype: str | None = None,
    kv_dtype: str | None = None,
    efficiency: Efficiency = Efficiency(),
    context: float | None = None,
    tensor_parallel: int = 1,
) -> Roofline:
    """The roofline of a model on `tensor_parallel` devices, without all-reduces; of a mixture, with all experts read.

    `context`: mean cached positions of a sequence, which a model with a window needs: beyond the window a layer reads
    no more, and the cost per position is that at this context. Attention multiplies in the cache's dtype, at its
    rate. Raises ValueError without the context, for a dtype whose rate the device's data sheet does not state, and
    for heads that the devices cannot share.
    """
    model.shared_by(tensor_parallel)
    if model.window and context is None:
        raise ValueError(
            f"{model.name} has layers with a window of {model.window}; expected the mean context in addition"
        )
    share = model.kv_share(context) if context is not None else 1.0
    cache, dtype = model.cache_dtype(dtype, kv_dtype), model.in_dtype(dtype)
    size, rate = dtype_bytes(dtype), device.arithmetic(dtype) * efficiency.arithmetic * tensor_parallel
    attention = device.arithmetic(cache) * efficiency.attention * tensor_parallel
    cached = model.kv_values(tensor_parallel) * dtype_bytes(cache) * share
    return Roofline(
        weight_pass=NS * model.read(1e9) * size / (device.bandwidth * efficiency.weights * tensor_parallel),
        per_token=NS * 2 * model.multiplied / rate,
        per_context_token=NS * cached / (device.bandwidth * efficiency.cache),
        per_chunk_work=NS * model.pair_flops * share / attention,
        per_sequence=NS * 2 * model.head / rate,
    )


def table(
    model: Architecture,
    device: Device,
    *,
    dtype: str | None = None,
    kv_dtype: str | None = None,
    efficiency: Efficiency = Efficiency(),
    context: float | None = None,
    tensor_parallel: int = 1,
) -> dict[str, Any]:
    """The same as a table's content: with the experts that a step's tokens touch, and two all-reduces a layer.

    Raises ValueError as `roofline`, and for several devices whose link is not known.
    """
    lines = roofline(
        model, device, dtype=dtype, kv_dtype=kv_dtype, efficiency=efficiency, context=context,
        tensor_parallel=tensor_parallel,
    )  # fmt: skip
    if tensor_parallel > 1 and not device.link:
        raise ValueError(f"device {device.name}: its link is not known; expected one for {tensor_parallel} devices")
    size = dtype_bytes(model.activation_dtype(dtype))
    dense = []
    for tokens in TOKENS:
        weights = lines.weight_pass * model.read(tokens) / model.read(1e9)
        products = (weights**4 + (lines.per_token * tokens) ** 4) ** 0.25
        dense.append(products + all_reduces_ns(model, device.link, tokens, size, efficiency, tensor_parallel))
    flat = {"at": [1], "ns": [0.0], "per_position": [0.0]}
    return {
        "dense": {"at": list(TOKENS), "ns": [float(f"{ns:.6g}") for ns in dense]},
        "decode": flat,
        "chunk": flat,
        "per_context_token": lines.per_context_token,
        "per_chunk_work": lines.per_chunk_work,
        "per_sequence": lines.per_sequence,
    }


def all_reduces_ns(
    model: Architecture, link: float, tokens: int, size: int, efficiency: Efficiency, devices: int
) -> float:
    """Nanoseconds in which the devices add up their parts of every token, twice a layer: a ring over the link.

    `link`: bytes/s in one direction; `size`: bytes of a number.
    """
    if devices == 1:
        return 0.0
    moved = tokens * model.hidden * size * 2 * (devices - 1) / devices
    return 2 * model.layers * NS * (efficiency.all_reduce_s + moved / (link * efficiency.link))


def from_shapes(
    model: Architecture,
    device: Device,
    *,
    name: str = "from-shapes",
    date: str,
    dtype: str | None = None,
    kv_dtype: str | None = None,
    tensor_parallel: int = 1,
    efficiency: Efficiency = Efficiency(),
    context: float | None = None,
    host_ns: float = 0.0,
    utilization: float = 0.9,
) -> Profile:
    """A profile from shapes alone.

    Raises ValueError for a model that does not fit, and as `roofline`, `table`.
    """
    cache, dtype = model.cache_dtype(dtype, kv_dtype), model.in_dtype(dtype)
    capacity(
        model, device.memory, dtype=dtype, kv_dtype=cache, utilization=utilization, tensor_parallel=tensor_parallel
    )
    settings: dict[str, Any] = {
        "dtype": dtype,
        "kv_dtype": cache,
        "efficiency": efficiency,
        "context": context,
        "tensor_parallel": tensor_parallel,
    }
    curve: Mapping[str, Mapping[str, Any]]
    if model.experts or tensor_parallel > 1:
        curve = {"table": {**table(model, device, **settings), "host": host_ns}}
    else:
        line = roofline(model, device, **settings)
        shown = {key: float(f"{value:.6g}") for key, value in asdict(line).items() if value}
        curve = {"roofline": {**shown, "host": host_ns}}
    return profile(
        curve,
        name=name,
        device=device.name,
        memory=int(device.memory),
        model=model.described(),
        dtype=dtype,
        tensor_parallel=tensor_parallel,
        date=date,
        method="From shapes alone: bytes over bandwidth and operations over rate, at stated efficiencies. Nothing of "
        "it is measured.",
        source=device.source,
        not_included=[
            *([] if host_ns else ["host time between steps"]),
            "kernel launches",
            "attention of few sequences, which does not fill the device",
            *(["uneven experts: all are taken to be equally likely"] if model.experts else []),
            *(["expanding the latents of earlier chunks again for each chunk"] if model.kv_rank else []),
        ],
        details={
            "efficiency": asdict(efficiency),
            "bandwidth": device.bandwidth,
            "rate": device.arithmetic(dtype),
            "link": device.link,
            "kv_dtype": cache,
            "mean_context": context,
        },
    )
