"""The environment of a measurement: device, memory, driver and versions. Reads settings, changes none."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrate.hardware.nvml import driver_version

if TYPE_CHECKING:
    import torch

    from calibrate.decoder.engine.executor import Executor

PACKAGES = ("torch", "triton", "flashinfer-python", "numpy")


def machine(device: torch.device) -> dict[str, Any]:
    """Keys of a profile: device, memory (bytes), driver, software; and `device_type`, cpu or cuda."""
    software = {name: found for name in PACKAGES if (found := installed(name)) is not None}
    about: dict[str, Any] = {"device_type": device.type, "driver": None, "software": software}
    if device.type == "cuda":
        import torch

        properties = torch.cuda.get_device_properties(device)
        software["cuda"] = str(torch.version.cuda)
        return about | {
            "device": properties.name,
            "memory": properties.total_memory,
            "driver": driver_version(),
        }
    return about | {"device": processor(), "memory": None}


def engine_on(engine: Executor) -> dict[str, Any]:
    """The environment of an engine and its model: what is measured, and the kernels that compute it."""
    shape = engine.shape
    return {
        "model": {"name": shape.name, "parameters": shape.parameters, "layers": shape.layers},
        "shape": shape.written(),
        **machine(engine.device),
        "dtype": engine.dtype,
        "attention": engine.attention,
        "graphs": list(engine.capture_sizes),
        "page_size": engine.page_size,
    }


def processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The name of the CPU, as the system states it."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def installed(package: str) -> str | None:
    """The version of a package; None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
