"""The provenance of a profile: what the user states about device and model, and the profile made of a fit."""

from __future__ import annotations

import copy
import datetime
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slotstep.scenario import document
from traces.errors import BadInput, known_keys

if TYPE_CHECKING:
    from calibrate.profiles.profile import Profile
    from sim.cost.forms import Curve

NEEDED = ("device", "model.name", "dtype", "tensor_parallel")
GIVEN = (
    "device",
    "memory",
    "driver",
    "software",
    "model",
    "dtype",
    "tensor_parallel",
    "page_size",
    "licence",
    "date",
)
"""Keys of a profile that the user states."""

OF_A_PROFILE = ("device", "memory", "model", "dtype", "tensor_parallel", "page_size", "licence")
"""Those of them that are kept when some terms of a profile are refitted."""


def stated(settings: Sequence[str], out: Path | None, known: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The KEY=VALUE of `--about` as a mapping.

    out    the profile to write: then all NEEDED keys have to be there
    known  the content of a profile whose OF_A_PROFILE keys are the defaults

    Raises BadInput for a key that a user cannot set, and for a missing one.
    """
    about = {key: copy.deepcopy(value) for key in OF_A_PROFILE if (value := (known or {}).get(key)) is not None}
    try:
        document.override(about, settings)
    except BadInput as error:
        raise BadInput(str(error).replace("--set", "--about").replace("engine.slots=8", "device=H100")) from None
    known_keys(about, GIVEN, "--about ")
    name = about.get("model")
    if isinstance(name, str):
        about["model"] = {"name": name}
    missing = [key for key in NEEDED if out is not None and value_at(about, key) in (None, "")]
    if missing:
        words = " ".join(f"--about {key}=..." for key in missing)
        raise BadInput(f"a profile says what it is of; expected also {words}")
    return about


def value_at(about: Mapping[str, Any], key: str) -> Any:
    """The value at a dotted key, None without."""
    found: Any = about
    for part in key.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def coefficients(cost: Curve) -> dict[str, float]:
    """The nonzero coefficients of a curve, ns, to six significant digits."""
    values = {each.name: getattr(cost, each.name) for each in fields(cost) if each.init}
    return {name: float(f"{value:.6g}") for name, value in values.items() if isinstance(value, float) and value}


def profile(cost: Curve, about: Mapping[str, Any], name: str, **found: Any) -> Profile:
    """The profile of a fitted curve; `found` are the keys that come from the fit.

    Raises BadInput for invalid provenance.
    """
    from calibrate.profiles import profile as profiles
    from calibrate.profiles.schema import coefficients as content

    ((kind, exact),) = content(cost).items()
    today = datetime.date.today().isoformat()
    try:
        return profiles.profile({kind: exact | coefficients(cost)}, name=name, **{"date": today, **about, **found})
    except ValueError as error:
        raise BadInput(f"--about {error}") from None
