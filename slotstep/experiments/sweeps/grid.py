"""A grid file: one scenario, and the keys that its copies differ in.

    scenario: chat.yaml              # a file beside this one, or a scenario written out
    set: {engine.pages: 4096}        # the same for all
    grid:                            # every combination; the last key varies fastest
      policy: [fcfs, {sjf: {error: 0.5}}]
      workload.scale_rate: [0.8, 1.0]
      workload.synthetic.output:     # values by name: the tables have the names
        short: {geometric: {mean: 100}}
        heavy: {pareto: {mean: 100, index: 1.5}}
    together:                        # keys that go together, each entry with every combination above
      - {engine.slots: 32, engine.pages: 2048}
      - {engine.slots: 64, engine.pages: 4096}
    seeds: 20                        # the scenario's seed and the 19 after it

Reads the files and makes the scenarios; runs nothing.
"""

from __future__ import annotations

import copy
import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from slotstep.runs import size_limits
from slotstep.runs.loading import parse
from slotstep.scenario import document
from slotstep.scenario.fields import Count, Section
from slotstep.scenario.schema import Scenario
from slotstep.scenario.validation_errors import complaint
from traces.errors import BadInput

Kind = Literal["bool", "int64", "double", "string"]


class Plan(Section):
    """A grid file."""

    scenario: str | dict[str, Any]
    set: dict[str, Any] = Field(default_factory=dict)
    grid: dict[str, Any] = Field(default_factory=dict)
    together: list[dict[str, Any]] = Field(default_factory=list)
    seeds: Count | None = None

    @field_validator("grid")
    @classmethod
    def each_once(cls, value: dict[str, Any]) -> dict[str, Any]:
        """For each key a list of values, or values by name: at least one, and none twice."""
        for key, given in value.items():
            if not isinstance(given, list | dict):
                raise ValueError(f"{key}: found {document.brief(given)}; expected a list, or values by name")
            values = list(given.values()) if isinstance(given, dict) else given
            if not values:
                raise ValueError(f"{key}: found no values; expected at least one")
            repeated = next((each for each in values if values.count(each) > 1), None)
            if repeated is not None:
                raise ValueError(f"{key}: {document.brief(repeated)} is there twice; expected each value once")
        return value

    @model_validator(mode="after")
    def one_place_for_a_key(self) -> Plan:
        """No key in two places, and the same keys in all that go together."""
        first = list(self.together[0]) if self.together else []
        for entry in self.together:
            if list(entry) != first:
                raise ValueError(f"together: found the keys {', '.join(entry)}; expected {', '.join(first)} in each")
        keys = [*self.set, *self.grid, *first, *(["seed"] if self.seeds else [])]
        repeated = next((key for key in keys if keys.count(key) > 1), None)
        if repeated is not None:
            raise ValueError(f"{repeated} is set in two places; expected it in one of set, grid, together and seeds")
        return self


@dataclass(frozen=True)
class Point:
    """One run of a sweep: the value of each axis by column, and the scenario, or the error without one."""

    axes: Mapping[str, Any]
    scenario: Scenario | None
    error: str | None = None


@dataclass(frozen=True)
class Grid:
    """The points of a grid file in order; the key and the type of each axis by column."""

    keys: Mapping[str, str]
    kinds: Mapping[str, Kind]
    points: tuple[Point, ...]


def load_grid(path: Path, allow_large: bool = False) -> Grid:
    """The grid in the YAML file `path`. Raises BadInput as `read`, and for a file that cannot be read."""
    return read(document.read(path), str(path), path.parent, allow_large)


def read(
    mapping: Mapping[str, Any], source: str = "grid", folder: Path | None = None, allow_large: bool = False
) -> Grid:
    """The grid that a mapping describes; file names are relative to `folder`. `allow_large` applies to all scenarios.

    A point whose scenario is invalid is kept with its error, as a failed run. Raises BadInput if all are invalid, for
    a key given in two places, and for a key without values.
    """
    folder = folder or Path()
    try:
        plan = Plan.model_validate(dict(mapping))
    except ValidationError as error:
        raise BadInput(f"{source}: {complaint(error, Plan, {})}") from None
    if isinstance(plan.scenario, str):
        file = folder / plan.scenario
        base, home, name = document.read(file), file.parent, file.stem
    else:
        base, home, name = copy.deepcopy(plan.scenario), folder, Path(source).stem
    document.override_with(base, plan.set)
    if allow_large:
        base["allow_large"] = True
    size_limits.check_runs(source, size(plan), allow_large)
    points = tuple(point(base, values, source, home, name) for values in combinations(plan, base.get("seed", 0)))
    if all(each.scenario is None for each in points):
        raise BadInput(str(points[0].error))
    keys = {column(key): key for key in settings_of(plan)}
    kinds, points = typed(points, keys)
    return Grid(keys, kinds, points)


def size(plan: Plan) -> int:
    """The number of points."""
    return math.prod([max(len(plan.together), 1), plan.seeds or 1, *map(len, plan.grid.values())])


def settings_of(plan: Plan) -> list[str]:
    """The keys that differ, in the order of the columns."""
    return [*(plan.together[0] if plan.together else ()), *plan.grid, *(["seed"] if plan.seeds else [])]


@dataclass(frozen=True)
class AxisValue:
    """A value of a key of a grid, and what the tables show for it: its name, or itself."""

    shown: Any
    value: Any


def combinations(plan: Plan, seed: int) -> Iterator[dict[str, AxisValue]]:
    """The value of each key at each point."""
    grid = {key: values_of(given) for key, given in plan.grid.items()}
    if plan.seeds:
        grid["seed"] = values_of(list(range(seed, seed + plan.seeds)))
    for group in plan.together or [{}]:
        first = {key: AxisValue(value, value) for key, value in group.items()}
        for values in itertools.product(*grid.values()):
            yield {**first, **dict(zip(grid, values, strict=True))}


def values_of(given: list[Any] | Mapping[str, Any]) -> list[AxisValue]:
    """The values of a key: a list of them, or values by name."""
    if isinstance(given, Mapping):
        return [AxisValue(str(name), value) for name, value in given.items()]
    return [AxisValue(value, value) for value in given]


def point(base: Mapping[str, Any], values: Mapping[str, AxisValue], source: str, home: Path, name: str) -> Point:
    """The scenario with these values."""
    axes = {column(key): found.shown for key, found in values.items()}
    mapping = copy.deepcopy(dict(base))
    try:
        document.override_with(mapping, {key: found.value for key, found in values.items()})
        where = ", ".join([source, *(f"{key}={text(found.shown)}" for key, found in values.items())])
        return Point(axes, parse(mapping, where, home, name))
    except BadInput as error:
        return Point(axes, None, str(error))


def column(key: str) -> str:
    """The name of an axis's column: its key, with underscores."""
    return key.replace(".", "_")


def text(value: object) -> str:
    """A value as text: JSON unless it is text already."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


MAKE: dict[Kind, Callable[[Any], Any]] = {"bool": bool, "int64": int, "double": float, "string": text}


def typed(points: Sequence[Point], columns: Iterable[str]) -> tuple[dict[str, Kind], tuple[Point, ...]]:
    """The type of each axis's column, and the points with values of that type."""
    kinds = {name: kind([point.axes[name] for point in points]) for name in columns}
    return kinds, tuple(
        replace(point, axes={name: MAKE[kinds[name]](value) for name, value in point.axes.items()})
        for point in points
    )


def kind(values: Sequence[object]) -> Kind:
    """The narrowest type of these values."""
    found = {type(value) for value in values}
    if found == {bool}:
        return "bool"
    if found == {int}:
        return "int64"
    return "double" if found <= {int, float} else "string"
