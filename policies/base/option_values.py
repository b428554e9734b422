"""Checks of option values: each returns the value, or raises ValueError that names option, value and expectation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from sim.request import Nanoseconds


def duration(name: str, value: object) -> Nanoseconds:
    """A duration of at least 0 ns."""
    if isinstance(value, bool) or not isinstance(value, Nanoseconds) or value < 0:
        raise ValueError(f"{name} is {value!r}; expected a duration")
    return value


def whole(name: str, value: object, least: int = 1) -> int:
    """A whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} is {value!r}; expected a whole number, at least {least}")
    return value


def flag(name: str, value: object) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} is {value!r}; expected true or false")
    return value


def number(name: str, value: object) -> float:
    """Any number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} is {value!r}; expected a number")
    return float(value)


def numbers(name: str, values: object) -> tuple[float, ...]:
    """A list of numbers."""
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise ValueError(f"{name} is {values!r}; expected a list of numbers")
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in values):
        raise ValueError(f"{name} is {list(values)!r}; expected a list of numbers")
    return tuple(values)


def weight(name: str, value: object, least: int | None = None) -> Fraction:
    """A number above 0 (or equal to `least`) and below 10^9, as the exact decimal that it is written as."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} is {value!r}; expected a number above 0")
    if not 0 < value < 10**9 and value != least:
        raise ValueError(f"{name} is {value!r}; expected a number above 0")
    return Fraction(str(value))


def counts(name: str, value: object, least: int = 1) -> dict[str, int]:
    """A mapping of tenants to whole numbers of at least `least`."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} is {value!r}; expected tenants with their counts")
    return {str(tenant): whole(f"{name}.{tenant}", count, least) for tenant, count in value.items()}
