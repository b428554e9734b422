"""Devices as their vendors' data sheets state them: memory, its bandwidth, rates, links, multiprocessors.

Nothing is measured: shares of these numbers that engines attain are in `calibrate.hardware.attained`.

Rates are of dense matrix products with tensor cores, accumulating in 32 bits, without sparsity (where a data sheet
states only rates with sparsity, half of them); links are one direction of one device to the others. Memory is the
nominal size in GiB: a driver leaves less of it, least where error correction takes a part (A10, L4, L40S); give the
exact number where it matters.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, fields

from calibrate.models.architecture import BYTES, dtype_bytes

GIB = 2**30
GB = 10**9
TB = 10**12
TFLOP = 1e12


@dataclass(frozen=True)
class Device:
    """memory in bytes; bandwidth and link in bytes/s; rate in FLOP/s at 16 bits, rate8 at 8 bits, rate32 at 32 bits.

    multiprocessors: each runs one block of an attention kernel at a time, or two. What is 0 is not known. `source`
    names the data sheet. Raises ValueError for a number that is missing or below 0.
    """

    name: str
    memory: float
    bandwidth: float
    rate: float
    rate8: float = 0.0
    rate32: float = 0.0
    link: float = 0.0
    multiprocessors: float = 0.0
    source: str = "numbers given by the user"

    def __post_init__(self) -> None:
        for key in ("memory", "bandwidth", "rate"):
            if getattr(self, key) <= 0:
                raise ValueError(f"device {self.name}: {key} is {getattr(self, key):g}; expected a number above 0")
        for key in ("rate8", "rate32", "link", "multiprocessors"):
            if getattr(self, key) < 0:
                raise ValueError(f"device {self.name}: {key} is {getattr(self, key):g}; expected 0 or more")

    def arithmetic(self, dtype: str) -> float:
        """FLOP/s of matrix products in this dtype; raises ValueError for a dtype that is not known here."""
        found = {1: self.rate8, 2: self.rate, 4: self.rate32}[dtype_bytes(dtype)]
        if not found:
            raise ValueError(f"device {self.name}: its rate in {dtype} is not known; expected {self.known()}")
        return found

    def known(self) -> str:
        """The dtypes whose rates are known, for a message."""
        rates = {1: self.rate8, 2: self.rate, 4: self.rate32}
        return " or ".join(dtype for dtype, size in BYTES.items() if rates[size])


DEVICES: Mapping[str, Device] = {
    device.name: device
    for device in (
        Device(
            "a10", 24 * GIB, 0.6 * TB, 125 * TFLOP, 250 * TFLOP, 31.2 * TFLOP, 32 * GB, 72, "NVIDIA A10 data sheet"
        ),
        Device(
            "a100-sxm-40gb", 40 * GIB, 1.555 * TB, 312 * TFLOP, 624 * TFLOP, 19.5 * TFLOP, 300 * GB, 108,
            "NVIDIA A100 data sheet",
        ),
        Device(
            "a100-sxm-80gb", 80 * GIB, 2.039 * TB, 312 * TFLOP, 624 * TFLOP, 19.5 * TFLOP, 300 * GB, 108,
            "NVIDIA A100 data sheet",
        ),
        Device(
            "b200", 180 * GIB, 8.0 * TB, 2250 * TFLOP, 4500 * TFLOP, 0, 900 * GB, 148, "NVIDIA DGX B200 data sheet"
        ),
        Device(
            "h100-pcie", 80 * GIB, 2.0 * TB, 756 * TFLOP, 1513 * TFLOP, 51 * TFLOP, 64 * GB, 114,
            "NVIDIA H100 data sheet",
        ),
        Device(
            "h100-sxm", 80 * GIB, 3.35 * TB, 989 * TFLOP, 1979 * TFLOP, 67 * TFLOP, 450 * GB, 132,
            "NVIDIA H100 data sheet",
        ),
        Device(
            "h200-sxm", 141 * GIB, 4.8 * TB, 989 * TFLOP, 1979 * TFLOP, 67 * TFLOP, 450 * GB, 132,
            "NVIDIA H200 data sheet",
        ),
        Device("l4", 24 * GIB, 0.3 * TB, 121 * TFLOP, 242 * TFLOP, 30.3 * TFLOP, 32 * GB, 58, "NVIDIA L4 data sheet"),
        Device(
            "l40s", 48 * GIB, 0.864 * TB, 362 * TFLOP, 733 * TFLOP, 91.6 * TFLOP, 32 * GB, 142,
            "NVIDIA L40S data sheet",
        ),
        Device(
            "mi300x", 192 * GIB, 5.3 * TB, 1307 * TFLOP, 2615 * TFLOP, 163 * TFLOP, 448 * GB, 304,
            "AMD MI300X data sheet",
        ),
        Device(
            "rtx-4090", 24 * GIB, 1.008 * TB, 165.2 * TFLOP, 330.3 * TFLOP, 82.6 * TFLOP, 32 * GB, 128,
            "NVIDIA Ada GPU architecture white paper",
        ),
        Device(
            "rtx-pro-6000", 96 * GIB, 1.792 * TB, 503.8 * TFLOP, 1007.6 * TFLOP, 126 * TFLOP, 64 * GB, 188,
            "NVIDIA RTX Blackwell PRO GPU architecture white paper",
        ),
    )
}  # fmt: skip

NUMBERS = [field.name for field in fields(Device) if field.name not in ("name", "source")]


def device(given: str) -> Device:
    """A device by name, or by its numbers: `memory=80e9,bandwidth=3.35e12,rate=989e12`, in bytes, bytes/s and FLOP/s.

    Raises ValueError, one line, for an unknown name (with the nearest), an unknown number, or one that is missing.
    """
    if given in DEVICES:
        return DEVICES[given]
    if "=" not in given:
        nearest = difflib.get_close_matches(given.lower(), DEVICES, n=1, cutoff=0.0)[0]
        raise ValueError(
            f"device {given}: unknown; did you mean {nearest}? (known are {', '.join(DEVICES)}, or numbers as in "
            "memory=80e9,bandwidth=3.35e12,rate=989e12)"
        )
    numbers: dict[str, float] = {}
    for part in given.split(","):
        key, _, value = part.partition("=")
        if key not in NUMBERS:
            nearest = difflib.get_close_matches(key, NUMBERS, n=1, cutoff=0.0)[0]
            raise ValueError(f"device: {key}: unknown number; did you mean {nearest}?")
        try:
            numbers[key] = float(value)
        except ValueError:
            raise ValueError(f"device: {key} is {value!r}; expected a number such as 3.35e12") from None
    if missing := [key for key in ("memory", "bandwidth", "rate") if key not in numbers]:
        raise ValueError(f"device: {missing[0]} is missing; expected memory, bandwidth and rate")
    return Device(name="given", source="numbers given by the user", **numbers)
