"""Errors of inputs, each in one line: what was found, where, and what was expected."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from numbers import Integral, Real
from typing import cast

from traces.limits import MAX_TOKENS


class BadInput(ValueError):  # noqa: N818 - used by every layer
    """An input that cannot be used; str() is the complete message."""

    def under(self, where: str) -> BadInput:
        """The same error with a prefix: `mean is 0` becomes `output.mean is 0`."""
        return BadInput(f"{where}.{self}")


class TooLarge(BadInput):
    """An input above a size limit that the user can lift with --yes or `allow_large=True`."""

    def __init__(self, found: str, limit: int) -> None:
        super().__init__(f"{found}; expected at most {limit:,}, or --yes (in Python allow_large=True)")


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name closest in spelling to `name`."""
    return difflib.get_close_matches(name, list(known), n=1, cutoff=0.0)[0]


def shown(value: object, longest: int = 60) -> str:
    """`value` for a message: its repr, cut after `longest` characters."""
    text = repr(value)
    return text if len(text) <= longest else text[:longest] + "..."


def is_number(value: object) -> bool:
    """Whether `value` is a real number and not a bool."""
    return isinstance(value, Real) and not isinstance(value, bool)


def number_within(name: str, value: object, least: float, most: float) -> None:
    """Raise BadInput unless `value` is a number from `least` to `most` (NaN and infinities are not)."""
    if not (is_number(value) and least <= cast(float, value) <= most):
        raise BadInput(f"{name} is {shown(value)}; expected a number from {least:g} to {most:g}")


def whole_within(name: str, value: object, least: int, most: int = MAX_TOKENS) -> None:
    """Raise BadInput unless `value` is a whole number from `least` to `most`."""
    if not (isinstance(value, Integral) and is_number(value) and least <= int(value) <= most):
        raise BadInput(f"{name} is {shown(value)}; expected a whole number from {least} to {most}")


def known_keys(mapping: Iterable[object], known: Iterable[str], prefix: str) -> None:
    """Raise BadInput for the first key of `mapping` not in `known`: `{prefix}{key}: unknown key; ...`."""
    names = list(known)
    for key in mapping:
        if key not in names:
            raise BadInput(f"{prefix}{key}: unknown key; did you mean {nearest(str(key), names)}?")
