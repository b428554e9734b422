"""Formatting of numbers and names: three significant digits, units of time that fit, control characters escaped."""

from __future__ import annotations

import math
from collections.abc import Iterable

ABSENT = "-"

_LONG = 36_000.0
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


def significant(value: float) -> str:
    """Three significant digits, whole from 100 on, with thousands separators: 0.0412, 1.20, 35.7, 1,234."""
    if value == 0:
        return "0"
    rounded = float(f"{value:.2e}")
    decimals = max(0, 2 - math.floor(math.log10(abs(rounded))))
    return f"{value:,.{decimals}f}"


def unit_of(seconds: Iterable[float]) -> tuple[float, str]:
    """The largest unit of which the longest of these times (s) is at least 1: its length in seconds, and its name.

    Units are s, ms, us and ns; hours from ten hours on; seconds if all times are 0 or there are none.
    """
    largest = max((float(f"{abs(value):.2e}") for value in seconds), default=0.0)
    if largest == 0:
        return _UNITS[0]
    if largest >= _LONG:
        return 3600.0, "h"
    return next((unit for unit in _UNITS if largest >= unit[0]), _UNITS[-1])


def duration(seconds: float | None) -> str:
    """A time given in seconds, with three digits in the unit that fits it; `-` for None: 12.3 ms, 1.20 s, 3,541 s."""
    if seconds is None:
        return ABSENT
    length, name = unit_of([seconds])
    return f"{significant(seconds / length)} {name}"


def tick_label(seconds: float) -> str:
    """A time given in seconds, in the unit that fits it and without trailing zeros: 0 s, 2 ms, 1.5 s."""
    length, name = unit_of([seconds])
    return f"{round(seconds / length, 6):,g} {name}"


def amount(value: float) -> str:
    """An integer in full, a float with three significant digits; both with thousands separators."""
    return f"{value:,}" if isinstance(value, int) else significant(value)


def percent(share: float | None) -> str:
    """A share as a percentage with one decimal, `-` for None: 0.179 is 17.9%."""
    return ABSENT if share is None else f"{100 * share:.1f}%"


def apportion(counts: Iterable[int | float], whole: int) -> list[int]:
    """Divide `whole` units in proportion to non-negative `counts`: one integer for each count, with the sum `whole`.

    Largest remainder method: each part is the floor of the exact quotient; the units left go to the largest
    fractional parts, the earlier of equal ones first. All parts are 0 if all counts are.
    """
    weights = list(counts)
    total = sum(weights)
    if total == 0:
        return [0] * len(weights)
    exact = [weight * whole / total for weight in weights]
    parts = [math.floor(part) for part in exact]
    by_remainder = sorted(range(len(parts)), key=lambda i: parts[i] - exact[i])
    for i in by_remainder[: whole - sum(parts)]:
        parts[i] += 1
    return parts


def printable(name: object) -> str:
    """Text from user data with each unprintable character (line ends, terminal controls) shown as its escape."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in str(name)
    )
