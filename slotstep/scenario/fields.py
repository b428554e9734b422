"""The types of values in a scenario, each with the error message for what was expected.

Does not depend on the scenario's keys.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer

from slotstep.scenario import units
from slotstep.scenario.document import brief

MOST = 10**15


class Section(BaseModel):
    """A section of a scenario: unknown keys are refused, and it is immutable."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class UnknownKeyError(ValueError):
    """`key` is not one of `known`, below the field whose validator raises this."""

    def __init__(self, key: str, known: list[str]) -> None:
        super().__init__(f"{key}: unknown key")
        self.key = key
        self.known = known


def number(value: object, expected: str = "a number") -> int | float:
    """`value` if it is a finite number or text that reads as one; raises ValueError otherwise."""
    read: object = value
    if isinstance(value, str):
        try:
            read = int(value)
        except ValueError:
            try:
                read = float(value)
            except ValueError:
                read = None
    if isinstance(read, bool) or not isinstance(read, int | float) or not math.isfinite(read):
        raise ValueError(f"found {brief(value)}; expected {expected}")
    return read


def whole(least: int) -> Callable[[object], int]:
    """A reader of whole numbers from `least` to MOST."""

    def read(value: object) -> int:
        expected = "a whole number" if least == -MOST else f"a whole number of at least {least}"
        found = number(value, expected)
        if found != int(found) or found < least:
            raise ValueError(f"found {brief(value)}; expected {expected}")
        if found > MOST:
            raise ValueError(f"found {brief(value)}; expected at most {MOST}")
        return int(found)

    return read


def positive(value: object) -> float:
    """`value` as a float above 0; raises ValueError otherwise."""
    found = float(number(value, "a number above 0"))
    if found <= 0:
        raise ValueError(f"found {brief(value)}; expected a number above 0")
    return found


def share(value: object) -> float:
    """`value` as a float from 0 to below 1; raises ValueError otherwise."""
    found = float(number(value, "a number from 0 to below 1"))
    if not 0 <= found < 1:
        raise ValueError(f"found {brief(value)}; expected a number from 0 to below 1")
    return found


def chance(value: object) -> float:
    """`value` as a float above 0 and below 1; raises ValueError otherwise."""
    found = float(number(value, "a number above 0 and below 1"))
    if not 0 < found < 1:
        raise ValueError(f"found {brief(value)}; expected a number above 0 and below 1")
    return found


def portion(value: object) -> float:
    """`value` as a float from 0 to 1; raises ValueError otherwise."""
    found = float(number(value, "a number from 0 to 1"))
    if not 0 <= found <= 1:
        raise ValueError(f"found {brief(value)}; expected a number from 0 to 1")
    return found


def block(value: object) -> int | str:
    """`value` as the id of a block of a prompt: a whole number or text; raises ValueError otherwise."""
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise ValueError(f"found {brief(value)}; expected a block's id, a whole number or text")
    return value


def label(value: object) -> str:
    """`value` as a name: text, or a whole number as its digits; raises ValueError otherwise."""
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise ValueError(f"found {brief(value)}; expected text, in quotes if need be")
    return str(value)


def truth(value: object) -> bool:
    """`value` if it is true or false; raises ValueError otherwise."""
    if not isinstance(value, bool):
        raise ValueError(f"found {brief(value)}; expected true or false")
    return value


def sequence(value: object) -> Any:
    """`value` as a tuple if it is a list; raises ValueError otherwise."""
    if not isinstance(value, list | tuple):
        raise ValueError(f"found {brief(value)}; expected a list")
    return tuple(value)


AS_TEXT = PlainSerializer(units.text, return_type=str, when_used="json")
"""Serialises durations as text in JSON and YAML; in Python they are nanoseconds."""

Count = Annotated[int, BeforeValidator(whole(1))]
Seed = Annotated[int, BeforeValidator(whole(0))]
Whole = Annotated[int, BeforeValidator(whole(-MOST))]
Share = Annotated[float, BeforeValidator(share)]
Chance = Annotated[float, BeforeValidator(chance)]
Portion = Annotated[float, BeforeValidator(portion)]
Block = Annotated[int | str, BeforeValidator(block)]
Memory = Annotated[str, BeforeValidator(units.memory)]
Positive = Annotated[float, BeforeValidator(positive)]
Label = Annotated[str, BeforeValidator(label)]
Truth = Annotated[bool, BeforeValidator(truth)]
Time = Annotated[int, BeforeValidator(units.nanoseconds), AS_TEXT]
Coefficient = Annotated[float, BeforeValidator(units.coefficient), AS_TEXT]


def named(value: object) -> object:
    """Checks a choice: a name, or a name with its options."""
    options = next(iter(value.values())) if isinstance(value, dict) and len(value) == 1 else None
    if isinstance(value, str) or isinstance(options, dict):
        return value
    raise ValueError(f"found {brief(value)}; expected a name, or a name with its options")


Choice = Annotated[str | dict[str, Any], BeforeValidator(named)]


def parts(choice: str | dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The name of a choice, and its options."""
    return (choice, {}) if isinstance(choice, str) else next(iter(choice.items()))
