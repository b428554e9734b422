"""Profiles that scenarios and commands name: shipped, in files, computed from shapes, of the measured database."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrate.hardware.devices import device as known_device
from calibrate.models.registry import architecture
from calibrate.profiles.analytic import from_shapes
from calibrate.profiles.host_time import host_time
from calibrate.profiles.profile import Profile, named, parse, read
from slotstep.scenario.cost import is_file

if TYPE_CHECKING:
    from calibrate.database.request import Request

FOLDER = "database"
"""Of the measured database, in the cache folder of slotstep ($SLOTSTEP_CACHE, else the user's own)."""


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


def of_database(request: Request, name: str) -> Profile:
    """The profile of a request to the measured database: from the cache, or made and kept there.

    The cache is by content (`calibrate.database.profile.identity`). Raises ValueError as `from_database`; OSError if
    the cache cannot be written.
    """
    from calibrate.database.profile import from_database, identity
    from reports.files import write_text
    from traces.reading.fetch import cache_folder

    file = cache_folder() / FOLDER / f"{identity(request)}.yaml"
    if not file.is_file():
        made = from_database(request, name=name, date=datetime.date.today().isoformat())
        file.parent.mkdir(parents=True, exist_ok=True)
        write_text(file, made.text())
    return parse(file.read_bytes(), name, str(file))
