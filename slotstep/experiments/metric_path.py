"""A metric by its dotted name, such as `tenants.chat.wait_s.mean`: its value, and which way it is better."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sim.accounting.metric import Better
from sim.accounting.metric import Value as Declared
from sim.accounting.metrics import chosen

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


def direction(name: str, more: Iterable[str] = ()) -> Better:
    """Which way a metric is better, as its declaration says; "" if neither is, or nothing is declared.

    more  names of metrics beside the built-in ones
    """
    found = declared(name, more)
    return "" if found is None else found.direction


def declared(name: str, more: Iterable[str] = ()) -> Declared | None:
    """The declaration of a metric, None if it has none; `more` as in `direction`."""
    inner = name.removeprefix("measured.")
    for found in chosen(more):
        for path, value in found.values.items():
            pattern = re.escape(f"{found.key}.{path}" if path else found.key)
            if re.fullmatch(pattern.replace(r"\*", ".+").replace(r"\[\]", r"\d+"), inner):
                return value
    return None
