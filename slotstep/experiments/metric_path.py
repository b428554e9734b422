"""A metric of a summary by its dotted name, such as `ttft_s.p99` or `tenants.chat.wait_s.mean`."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

Value = int | float | str | None


def metric(summary: Mapping[str, Any], name: str) -> Value:
    """The value that a summary has under a dotted `name`; a key may itself contain dots.

    Raises ValueError, with the nearest name, for an unknown name and for a section.
    """
    found = dict(leaves(summary))
    if name not in found:
        within = [key for key in found if key.startswith(f"{name}.")]
        if within:
            raise ValueError(f"{name} is a section; expected a number in it, such as {within[0]}")
        nearest = difflib.get_close_matches(name, found, n=1, cutoff=0.0)
        raise ValueError(f"{name}: no such metric; did you mean {nearest[0]}?")
    return found[name]


def leaves(section: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Value]]:
    """Every metric in a section with its dotted name; of a list, by position from 0."""
    for key, value in section.items():
        if isinstance(value, list):
            value = {str(place): one for place, one in enumerate(value)}
        if isinstance(value, Mapping):
            yield from leaves(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value
