"""Clocks, power, temperature and throttling of an NVIDIA GPU, read through NVML by ctypes. Changes no setting.

Names and numbers are those of NVIDIA's nvml.h.
"""

from __future__ import annotations

import ctypes
from typing import Any

GRAPHICS, MEMORY = 0, 2
"""nvmlClockType_t."""
TEMPERATURE_GPU = 0
REASONS = {
    0x1: "idle",
    0x2: "applications clocks",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "thermal, software",
    0x40: "thermal, hardware",
    0x80: "power brake",
    0x100: "display clocks",
}
"""nvmlClocksEventReasons, by bit."""
SLOW = 0x4 | 0x8 | 0x20 | 0x40 | 0x80
"""The reasons that reduce the device's speed."""


class Nvml:
    """One device of the driver's library; `library` replaces it in tests.

    Raises OSError where there is no NVML, or no such device.
    """

    def __init__(self, index: int = 0, library: Any = None) -> None:
        self.library = ctypes.CDLL("libnvidia-ml.so.1") if library is None else library
        self.device = ctypes.c_void_p()
        for call, arguments in (
            ("nvmlInit_v2", ()),
            ("nvmlDeviceGetHandleByIndex_v2", (ctypes.c_uint(index), ctypes.byref(self.device))),
        ):
            code = getattr(self.library, call)(*arguments)
            if code:
                raise OSError(f"NVML: {call} returned {code}")

    def read_state(self) -> dict[str, Any]:
        """graphics_mhz, memory_mhz, power_w, temperature_c and throttled (the reasons); None where unknown."""
        reasons = self.read("nvmlDeviceGetCurrentClocksThrottleReasons", ctypes.c_ulonglong())
        power = self.read("nvmlDeviceGetPowerUsage", ctypes.c_uint())
        return {
            "graphics_mhz": self.read("nvmlDeviceGetClockInfo", ctypes.c_uint(), GRAPHICS),
            "memory_mhz": self.read("nvmlDeviceGetClockInfo", ctypes.c_uint(), MEMORY),
            "power_w": None if power is None else power / 1000,
            "temperature_c": self.read("nvmlDeviceGetTemperature", ctypes.c_uint(), TEMPERATURE_GPU),
            "throttled": None if reasons is None else said(reasons & SLOW),
        }

    def driver(self) -> str | None:
        """The version of the driver; None if it does not report it."""
        text = ctypes.create_string_buffer(80)
        code = self.library.nvmlSystemGetDriverVersion(text, ctypes.c_uint(len(text)))
        return None if code else text.value.decode()

    def read(self, call: str, result: Any, *arguments: int) -> int | None:
        """One number; None if the device does not report it."""
        code = getattr(self.library, call)(self.device, *map(ctypes.c_uint, arguments), ctypes.byref(result))
        return None if code else int(result.value)


def said(reasons: int) -> list[str]:
    """The names of the reasons in a bit mask."""
    return [name for bit, name in REASONS.items() if reasons & bit]


def driver_version() -> str | None:
    """The version of the driver; None without NVML."""
    try:
        return Nvml().driver()
    except OSError:
        return None


def state_reader(device_type: str, index: int = 0) -> Any:
    """A function that reads the device's state: `Nvml.read_state`, or without NVML one that returns {}."""
    if device_type != "cuda":
        return dict
    try:
        return Nvml(index).read_state
    except OSError:
        return dict
