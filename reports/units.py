"""Numbers as people read them: three significant digits, a unit that fits, and names made safe to print.

Knows nothing of runs or policies.
"""

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
    """The unit (its length in seconds, its name) that fits the largest of these times.

    It is then at least 1 of that unit; hours from ten hours on, seconds for 0.
    """
    largest = max((float(f"{abs(value):.2e}") for value in seconds), default=0.0)
    if largest == 0:
        return _UNITS[0]
    if largest >= _LONG:
        return 3600.0, "h"
    return next((unit for unit in _UNITS if largest >= unit[0]), _UNITS[-1])


def duration(seconds: float | None) -> str:
    """A time in seconds in the unit that fits it, `-` for None: 12.3 ms, 1.20 s, 3,541 s."""
    if seconds is None:
        return ABSENT
    length, name = unit_of([seconds])
    return f"{significant(seconds / length)} {name}"


def percent(share: float | None) -> str:
    """A share as a percentage with one decimal, `-` for None: 0.179 is 17.9%."""
    return ABSENT if share is None else f"{100 * share:.1f}%"


def apportion(counts: Iterable[int | float], whole: int) -> list[int]:
    """Divide `whole` units in proportion to non-negative `counts` so that the parts add up to it exactly.

    Largest remainder: everyone gets the floor of the exact part, the units left go to the largest fractions,
    the earlier of equals first. All parts are 0 when all counts are.
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
    """A name from user data with whatever would move the cursor or colour a terminal shown as its escape."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in str(name)
    )
