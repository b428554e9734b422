"""Shares of a data sheet that engines attain, and durations of their kernels: the constants of costs from shapes.

Sources, by field, of the devices in `ATTAINED`: least squares over the operator tables of aiconfigurator-core 0.12.0
(Apache-2.0; kernels of vLLM 0.24 and, for attention on Hopper, of SGLang 0.5.14; vLLM 0.14 on the A100), measured one
by one in captured graphs; of the RTX 4090 the tables of LLMServingSim (MIT).

    weights, product_s    matrix products of 1 to 64 tokens: time = product_s + bytes / (weights x bandwidth)
    arithmetic            matrix products of 2,048 to 8,192 tokens, times `SUSTAINED`
    overlap               the same at 256 tokens, between the two
    cache, block_s,       attention of decodes whose keys and values exceed the second-level cache by half:
    attention_s           time = attention_s + block_s x sequences x heads + bytes / (cache x bandwidth)
    attention             attention of prompts of 4,096 and 8,192 tokens

Matrices that the second-level cache holds (L40S, RTX PRO 6000) do not count. A device without tables has the
defaults: round numbers near the lowest of the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from calibrate.hardware.devices import Device
from calibrate.models.architecture import dtype_bytes

SUSTAINED = 0.93
"""Share of the rate of a short measurement that is left in a run of minutes, where the clock follows the power limit.

With it the open rows (even crc32 of the id) of aiconfigurator's measured corpus are met within 2% where arithmetic
counts most: TensorRT-LLM on one H100, 64 and 128 clients.
"""
SKEW = 10e-6
"""Seconds that devices wait for each other in an all-reduce of an engine, beyond one measured in a loop: assumed."""
EIGHT_BITS = (0.75, 1.5e-6, 0.8)
"""Of matrix products of 8 bits the share of the attained rate that is left (tables of the H100, H200 and L40S), and
the seconds in which the input of each is quantised (open rows of Llama-3.1-70B); the share of the bandwidth that is
left for a cache of 8 bits (tables)."""
KERNEL_S = 2.3e-6
"""Seconds of a small kernel of a captured graph (tables: 9 us for those of a layer)."""
BLOCK_BANDWIDTH = 25e9
"""Bytes/s at which one block of an attention kernel reads a context alone: 20 to 28 in tables of four devices."""
SECOND_LEVEL = 1.6
"""Bandwidth of the second-level cache over that of the memory, as attention beside a chunk attains it: 1.1 to 2.2 in
the tables of the RTX 4090 and the RTX PRO 6000 (LLMServingSim)."""
PCIE = 64e9
"""Links up to this rate, bytes/s in one direction (16 lanes of version 5), are PCIe; faster ones are NVLink."""


@dataclass(frozen=True)
class Efficiency:
    """Shares of the data sheet: bandwidth for weights and for the cache, rates, the link; and times in seconds.

    link          over NVLink: published all-reduces on eight H100s; over PCIe see `OVER_PCIE`
    product_s     of each matrix product beyond its bytes
    attention_s   of the attention of a layer, whatever the contexts
    all_reduce_s  of the smallest all-reduce
    block_s       of each head of keys and values of each sequence in the attention of a layer
    overlap       of loading weights with arithmetic: exponent of the smooth maximum of both, infinite if perfect

    Raises ValueError for a share or a time outside (0, 1], and for an overlap below 1.
    """

    weights: float = 0.75
    cache: float = 0.7
    arithmetic: float = 0.55
    attention: float = 0.45
    link: float = 0.7
    all_reduce_s: float = 15e-6
    product_s: float = 4e-6
    attention_s: float = 12e-6
    overlap: float = 2.0
    block_s: float = 20e-9

    def __post_init__(self) -> None:
        for key, value in asdict(self).items():
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if key == "overlap":
                if not number or value < 1:
                    raise ValueError(f"efficiency.overlap is {value!r}; expected a number from 1")
            elif not number or not 0 < value <= 1:
                raise ValueError(f"efficiency.{key} is {value!r}; expected a number above 0 and up to 1")


def measured(
    weights: float, product_us: float, arithmetic: float, overlap: float, cache: float, attention_us: float,
    block_ns: float, attention: float,
) -> Efficiency:  # fmt: skip
    """The efficiencies of a device with tables; times in microseconds, arithmetic before `SUSTAINED`."""
    return Efficiency(
        weights=weights,
        cache=cache,
        arithmetic=round(arithmetic * SUSTAINED, 3),
        attention=attention,
        product_s=product_us * 1e-6,
        attention_s=attention_us * 1e-6,
        overlap=overlap,
        block_s=block_ns * 1e-9,
    )


A100 = measured(0.72, 4.7, 0.85, 1.5, 0.74, 16.5, 16, 0.53)
ATTAINED: Mapping[str, Efficiency] = {
    "a100-sxm-40gb": A100,
    "a100-sxm-80gb": A100,
    "b200": measured(0.77, 2.9, 0.68, 2.0, 0.88, 8.9, 2, 0.45),
    "h100-sxm": measured(0.86, 3.2, 0.75, 3.0, 0.95, 15.0, 9, 0.55),
    "h200-sxm": measured(0.82, 3.4, 0.74, 3.0, 0.95, 15.0, 13, 0.55),
    "l40s": measured(0.80, 2.0, 0.62, 2.0, 0.82, 10.5, 29, 0.47),
    "rtx-4090": measured(0.95, 1.5, 1.0, 3.0, 0.93, 11.5, 20, 0.6),
    "rtx-pro-6000": measured(0.81, 1.3, 0.77, 3.0, 0.83, 11.5, 7, 0.54),
}
OVER_PCIE: Mapping[int, tuple[float, float]] = {2: (0.5, 5e-6), 4: (0.2, 13e-6), 8: (0.12, 25e-6)}
"""Share of a PCIe link that an all-reduce of 2, 4 or 8 devices attains, and the duration of the smallest.

Tables of the L40S have 0.57, 0.12 and 0.06, of the RTX PRO 6000 0.61 (another version 0.22), 0.39 and 0.33: without
access of one device to another its bytes pass through the memory of the host.
"""


def attained(
    device: Device, devices: int = 1, dtype: str = "bfloat16", cache: str = "bfloat16", **given: float
) -> Efficiency:
    """The efficiencies of `devices` such devices, by the dtypes of weights and cache; `given` replace them.

    Raises ValueError as `Efficiency`.
    """
    found = ATTAINED.get(device.name, Efficiency())
    arithmetic, quantised, bandwidth = EIGHT_BITS
    if dtype_bytes(dtype) == 1:
        found = replace(found, arithmetic=found.arithmetic * arithmetic, product_s=found.product_s + quantised)
    if dtype_bytes(cache) == 1:
        found = replace(found, cache=found.cache * bandwidth)
    if devices > 1 and device.link and device.link <= PCIE:
        share, smallest = OVER_PCIE[min(number for number in OVER_PCIE if number >= min(devices, max(OVER_PCIE)))]
        found = replace(found, link=share, all_reduce_s=smallest + SKEW)
    return replace(found, **given)
