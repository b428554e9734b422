"""Durations (`5ms`, `1.5s`) as nanoseconds and back, in decimal arithmetic; amounts of memory (`80GiB`).

A time is a whole number of nanoseconds; a cost coefficient may be a fraction of one.
"""

from __future__ import annotations

import re
from decimal import Context, Decimal

EXPONENTS = {"ns": 0, "us": 3, "ms": 6, "s": 9}
FACTORS = {**{unit: Decimal(10) ** power for unit, power in EXPONENTS.items()}}
FACTORS |= {"m": 60 * FACTORS["s"], "h": 3600 * FACTORS["s"]}
UNITS = ", ".join(FACTORS)
LONGEST = 2**63 - 1
BYTES = {"GiB": 2**30, "GB": 10**9, "MiB": 2**20, "MB": 10**6}

NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
QUANTITY = re.compile(rf"\s*({NUMBER})\s*([A-Za-zµ]*)\s*")


def nanoseconds(value: object) -> int:
    """`value`, such as "1.5s" or a bare 0, to the nearest nanosecond.

    Raises ValueError for anything but a duration of at least 0 with one of the known units.
    """
    return int(exact(value).to_integral_value())


def coefficient(value: object) -> float:
    """`value`, such as "0.32ns" or a bare 0, in nanoseconds; raises ValueError as `nanoseconds` does."""
    return float(exact(value))


def exact(value: object) -> Decimal:
    """`value` in nanoseconds, every digit kept; raises ValueError as `nanoseconds` does."""
    number, unit = parts(value)
    if number is None:
        raise ValueError(f"found {value!r}; expected a duration such as 5ms (units: {UNITS})")
    if number.is_signed() and number:
        raise ValueError(f"found {value!r}; expected a duration of at least 0")
    if not unit and number:
        raise ValueError(f"found {value!r}, without a unit; expected a duration such as 5ms (units: {UNITS})")
    if unit and unit not in FACTORS:
        raise ValueError(f"found {value!r}; expected one of the units {UNITS}")
    if not number:
        return Decimal(0)
    digits = Context(prec=len(number.as_tuple().digits) + 16)
    if number.adjusted() > 20 or (length := digits.multiply(number, FACTORS[unit])) > LONGEST:
        raise ValueError(f"found {value!r}; expected a duration of less than 292 years")
    return length


def memory(value: object) -> str:
    """`value`, such as "80GiB", if it is an amount of memory above 0; raises ValueError otherwise."""
    number, unit = parts(value)
    if number is None or number <= 0 or unit not in BYTES:
        raise ValueError(f"found {value!r}; expected an amount of memory such as 80GiB (units: {', '.join(BYTES)})")
    return str(value).strip()


def gibibytes(amount: str) -> Decimal:
    """An amount of memory, as `memory` takes it, in GiB."""
    number, unit = parts(amount)
    return (number or Decimal(0)) * BYTES[unit] / 2**30


def parts(value: object) -> tuple[Decimal | None, str]:
    """The number and the unit of `value`; no number if it has not the form of a duration."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None, ""
    match = QUANTITY.fullmatch(str(value))
    return (Decimal(match[1]), match[2]) if match else (None, "")


def text(length: float) -> str:
    """`length` nanoseconds in the largest decimal unit that it fills; every digit kept."""
    number = Decimal(repr(length))
    unit = next((u for u in reversed(EXPONENTS) if number >= FACTORS[u]), "ns")
    return f"{(number / FACTORS[unit]).normalize():f}{unit}"
