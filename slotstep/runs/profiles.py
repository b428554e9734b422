"""Profiles by shipped name, by file, or of shapes, as scenarios and commands give them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from calibrate.hardware.devices import device as known_device
from calibrate.models.registry import architecture
from calibrate.profiles.analytic import Efficiency, from_shapes
from calibrate.profiles.profile import Profile, named, read
from slotstep.scenario.cost import is_file


def find(given: str) -> Profile:
    """The profile of a shipped name or in a file. Raises ValueError, one line, for what is neither or not one."""
    if not is_file(given):
        return named(given)
    try:
        return read(Path(given))
    except OSError as error:
        raise ValueError(f"{given}: {error.strerror}") from None


def of_shape(model: str, device: str, *, efficiency: dict[str, float], **settings: Any) -> Profile:
    """The profile of a model's sizes and a device's data sheet; its content is the same on any day.

    Raises ValueError, one line, for a model or device that is not known and for one that does not fit the other.
    """
    return from_shapes(
        architecture(model),
        known_device(device),
        name=f"{model} on {device}",
        date="computed when used",
        efficiency=Efficiency(**efficiency),
        **settings,
    )
