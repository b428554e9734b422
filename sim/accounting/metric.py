"""The declaration of a metric: its key in the summary, what it means, how it is computed, and its values.

Everything that shows a metric reads its declaration: the summary, the tables of a run and of a comparison, the
columns of a sweep, the reference page and the JSON schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from sim.accounting.accounts import Accounts

Best = Literal["", "highest", "lowest", "shortest", "fewest"]
Better = Literal["", "higher", "lower"]
Type = Literal["bool", "int64", "double", "string"]

JSON_TYPES: Mapping[Type, str] = {"bool": "boolean", "int64": "integer", "double": "number", "string": "string"}


@dataclass(frozen=True)
class Value:
    """One value of a metric.

    type    of its column in a sweep; every value may be null
    unit    "s" for a time, "share" for a fraction, otherwise as it is printed: "tok/s", "pages"
    best    which value is best, as comparisons say it; "": it is not compared
    better  which way is better, where `best` does not say it; "": neither
    name    in sentences; by default its key
    header  in a narrow column of a comparison, on two lines or more; by default its name
    column  it is a column of a sweep
    seeds   where runs are compared over several seeds, it is compared too
    """

    type: Type = "double"
    unit: str = ""
    best: Best = ""
    better: Better = ""
    name: str = ""
    header: str = ""
    column: bool = True
    seeds: bool = True

    @property
    def direction(self) -> Better:
        """Which way is better; "" if neither is."""
        if not self.best:
            return self.better
        return "higher" if self.best == "highest" else "lower"


@dataclass(frozen=True)
class Metric:
    """A metric of a run: one key of its summary.

    key     its name in the summary
    about   what it means, in Markdown
    of      computes it from the accounts of the run: a number, a text, or a mapping or list of them
    values  what it consists of, by dotted path below the key; "" stands for the metric itself, `*` for any name, `[]`
            for each element of a list
    line    the subject of its own line in the table of a run, by default its key; "": another line tells it
    """

    key: str
    about: str
    of: Callable[[Accounts], Any]
    values: Mapping[str, Value] = field(default_factory=dict)
    line: str | None = None

    @property
    def subject(self) -> str:
        """The subject of its line in the table of a run; "" if it has none: only single numbers have one."""
        if "" not in self.values or self.values[""].type == "string":
            return ""
        return self.key if self.line is None else self.line

    @property
    def columns(self) -> Iterator[tuple[tuple[str, ...], Value]]:
        """The values that are columns of a sweep, by their path in the summary."""
        for path, value in self.values.items():
            if value.column and "*" not in path and "[]" not in path:
                yield (self.key, *path.split(".")) if path else (self.key,), value

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of the metric."""
        made: dict[str, Any] = {}
        for path, value in self.values.items():
            here = made
            for part in path.split(".") if path else ():
                here = below(here, part)
            here |= {"type": [JSON_TYPES[value.type], "null"]} | ({"unit": value.unit} if value.unit else {})
            here |= {"better": value.direction} if value.direction else {}
        return {"description": self.about} | made


def below(schema: dict[str, Any], part: str) -> dict[str, Any]:
    """The schema of one part of an object or a list, made if it is not there."""
    if part == "[]":
        schema["type"] = ["array", "null"]
        found: dict[str, Any] = schema.setdefault("items", {})
        return found
    schema["type"] = ["object", "null"]
    if part == "*":
        found = schema.setdefault("additionalProperties", {})
    else:
        found = schema.setdefault("properties", {}).setdefault(part, {})
    return found
