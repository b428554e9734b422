"""The choices beside the order: admission rules, victims and predictors, each with its description and options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from policies.admissions import ADMISSIONS
from policies.base.entry import Choice
from policies.predictors.registry import PREDICTORS
from policies.registry import POLICIES
from policies.victims import VICTIMS
from sim.registry import Registry
from slotstep.scenario.units import text
from traces.errors import BadInput

AXES: Mapping[str, Registry[Any]] = {
    "policies": POLICIES,
    "admission": ADMISSIONS,
    "victim": VICTIMS,
    "predict": PREDICTORS,
}
"""By key of the listing: policies, and the other choices by their key in a scenario."""


def choices() -> dict[str, list[dict[str, Any]]]:
    """`name`, `about`, `options` (defaults by name, durations as text) and `source` ("" if none), by axis.

    Those of installed packages come last. Raises BadInput for one of them that cannot be loaded.
    """
    return {axis: [listed(name, entry) for name, entry in entries(known).items()] for axis, known in AXES.items()}


def entries(registry: Registry[Any]) -> dict[str, Choice[Any]]:
    """All entries of a registry. Raises BadInput for an installed one that cannot be loaded."""
    try:
        return registry.everything()
    except ValueError as error:
        raise BadInput(f"{registry.what} {error}") from error


def listed(name: str, entry: Choice[Any]) -> dict[str, Any]:
    """One choice as the listing has it; the default of an option that has to be given is null."""
    options = {
        key: text(option.default) if option.kind == "duration" else option.default  # type: ignore[arg-type]
        for key, option in entry.options.items()
    }
    return {"name": name, "about": entry.about, "options": options, "source": entry.source}
