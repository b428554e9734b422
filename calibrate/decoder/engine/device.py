"""The device of an engine, and how much memory it has."""

from __future__ import annotations

import torch

from calibrate.decoder.engine.protocol import CannotRun
from calibrate.hardware.device_memory import host_bytes, size


def device_of(name: str) -> torch.device:
    """The device of a name; raises CannotRun for a GPU that is not there."""
    if name == "cpu" or (name == "auto" and not torch.cuda.is_available()):
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise CannotRun("device cuda: PyTorch finds no CUDA GPU here; expected cpu, or auto")
    return torch.device("cuda", torch.cuda.current_device())


def device_bytes(device: torch.device, fraction: float) -> int:
    """Bytes of memory a device has; on a GPU PyTorch refuses to use more than the fraction from here on."""
    if device.type == "cpu":
        return host_bytes()
    free, total = torch.cuda.mem_get_info(device)
    if free < total * fraction:
        raise CannotRun(
            f"{size(free)} of {size(total)} on the GPU are free; expected a memory_fraction of at most "
            f"{int(100 * free / total) / 100}"
        )
    torch.cuda.set_per_process_memory_fraction(fraction, device)
    return total
