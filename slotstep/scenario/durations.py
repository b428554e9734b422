"""Durations in the parts of a scenario that other packages define, from text to nanoseconds and back.

The caller states which keys hold durations.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from slotstep.scenario import units


def in_nanoseconds(value: Any, times: Collection[str], path: str = "") -> Any:
    """`value` with every duration below a key of `times`, at any depth, in ns, and whole numbers as int.

    Elements of a list belong to the list's key. Raises ValueError, with the key's path, for an invalid duration.
    """
    if isinstance(value, Mapping):
        return {key: in_nanoseconds(inner, times, f"{path}.{key}".strip(".")) for key, inner in value.items()}
    if isinstance(value, list):
        return [in_nanoseconds(inner, times, f"{path}.{place}") for place, inner in enumerate(value)]
    key = next((part for part in reversed(path.split(".")) if not part.isdecimal()), "")
    if key in times:
        try:
            return units.nanoseconds(value)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    return int(value) if isinstance(value, float) and value.is_integer() else value


def with_units(value: Any, times: Collection[str]) -> Any:
    """`value` with nanoseconds below a key of `times`, at any depth, as text with a unit."""
    if isinstance(value, list):
        return [with_units(inner, times) for inner in value]
    if not isinstance(value, Mapping):
        return value
    return {
        key: units.text(inner) if key in times and not isinstance(inner, Mapping) else with_units(inner, times)
        for key, inner in value.items()
    }
