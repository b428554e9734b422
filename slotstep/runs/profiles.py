"""Profiles that scenarios and commands name: shipped ones, files, or computed from shapes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from calibrate.hardware.devices import device as known_device
from calibrate.models.registry import architecture
from calibrate.profiles.analytic import from_shapes
from calibrate.profiles.host_time import host_time
from calibrate.profiles.profile import Profile, named, read
from slotstep.scenario.cost import is_file


def find(given: str) -> Profile:
    """The profile of a shipped name or in a file. Raises ValueError, one line, for one that does not exist or is
    invalid.
    """
    if not is_file(given):
        return named(given)
    try:
        return read(Path(given))
    except OSError as error:
        raise ValueError(f"{given}: {error.strerror}") from None


def of_shape(
    model: str,
    device: str,
    *,
    efficiency: dict[str, float],
    engine: str,
    version: str | None = None,
    scheduling: str | None = None,
    **settings: Any,
) -> Profile:
    """The profile of a model on a device, computed from shapes, the data sheet and an engine's host time.

    Deterministic. Raises ValueError, one line, for an unknown model, device, engine or version, and for a model that
    does not fit the device.
    """
    return from_shapes(
        architecture(model),
        known_device(device),
        name=f"{model} on {device}",
        date="computed when used",
        given=efficiency,
        host=host_time(engine, version, scheduling),
        **settings,
    )
