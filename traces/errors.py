"""What is wrong with an input, in one line a user can act on. Knows no format."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from numbers import Integral, Real
from typing import cast

from traces.limits import MAX_TOKENS


class BadInput(ValueError):  # noqa: N818 - the name every layer knows it by
    """An input that cannot be used; str() is the whole line the user sees."""

    def under(self, where: str) -> BadInput:
        """The same complaint with its place in front: `mean is 0` becomes `output.mean is 0`."""
        return BadInput(f"{where}.{self}")


class TooLarge(BadInput):
    """More than is taken for meant, at least `limit` of it; whoever does mean it can say so."""

    def __init__(self, found: str, limit: int) -> None:
        super().__init__(f"{found}; expected at most {limit:,}, or --yes (in Python allow_large=True)")


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name closest in spelling to `name`."""
    return difflib.get_close_matches(name, list(known), n=1, cutoff=0.0)[0]


def shown(value: object, longest: int = 60) -> str:
    """`value` as it stands in a message: quoted, on one line, cut after `longest` characters."""
    text = repr(value)
    return text if len(text) <= longest else text[:longest] + "..."


def is_number(value: object) -> bool:
    """True for any real number that is not a truth value."""
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
