"""Checks against a baseline: a YAML file of scenarios and their recorded metrics, run and compared, or recorded anew.

Recorded values are replaced in place, so that comments and layout stay.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BeforeValidator, ValidationError

from reports.text.checks import Broken, Compared, Outcome
from slotstep.experiments.metric_path import Value, metric
from slotstep.runs.loading import load
from slotstep.runs.resolution import with_policy
from slotstep.runs.simulation import run
from slotstep.scenario import document
from slotstep.scenario.fields import Label, Section, sequence
from slotstep.scenario.validation_errors import complaint
from traces.errors import BadInput


class Tolerance(Section):
    """The allowed deviation from the recorded value: an amount, or a share of it."""

    amount: float
    relative: bool

    def allows(self, recorded: float, now: float) -> bool:
        """Whether `now` is within the tolerance."""
        return abs(now - recorded) <= self.amount * (abs(recorded) if self.relative else 1.0)

    def __str__(self) -> str:
        return f"{100 * self.amount:g}%" if self.relative else f"{self.amount:g}"


class Expected(Section):
    """A recorded value and its tolerance; without one the value has to be equal."""

    value: Value
    within: Tolerance | None = None


def tolerance(value: object) -> Tolerance:
    """From `0.5` or `2%`; raises ValueError otherwise."""
    text = str(value).strip()
    try:
        amount = float(text.removesuffix("%"))
    except ValueError:
        amount = math.nan
    if isinstance(value, bool) or not 0 <= amount < math.inf:
        raise ValueError(f"found {document.brief(value)}; expected an amount such as 0.5, or a share such as 2%")
    return Tolerance(amount=amount / 100 if text.endswith("%") else amount, relative=text.endswith("%"))


def expected(value: object) -> Expected:
    """From a value alone, or `{value: ..., within: ...}`; raises ValueError otherwise."""
    if isinstance(value, Mapping):
        unknown = sorted(set(value) - {"value", "within"})
        if unknown or "value" not in value:
            raise ValueError(f"found {document.brief(value)}; expected a value, or value and within")
        if not isinstance(value["value"], int | float):
            raise ValueError(
                f"found {document.brief(value['value'])}; expected a number, which within can be said of"
            )
        return Expected(value=recorded_value(value["value"]), within=tolerance(value.get("within", 0)))
    return Expected(value=recorded_value(value))


def recorded_value(value: object) -> Value:
    """A recorded value. Raises ValueError for a list, and for true and false."""
    if isinstance(value, bool) or not (value is None or isinstance(value, int | float | str)):
        raise ValueError(f"found {document.brief(value)}; expected a number or text")
    return value


def metrics(value: object) -> dict[str, Expected]:
    """From a mapping of metrics to what is expected of them; raises ValueError for anything else."""
    if not isinstance(value, Mapping) or not value:
        raise ValueError(f"found {document.brief(value)}; expected metrics, such as occupancy: 0.95")
    found = {}
    for name, given in value.items():
        try:
            found[str(name)] = expected(given)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return found


class Check(Section):
    """One scenario file and the expected metrics of its run."""

    scenario: Label
    policy: Label | None = None
    set: Annotated[tuple[Label, ...], BeforeValidator(sequence)] = ()
    metrics: Annotated[dict[str, Any], BeforeValidator(metrics)]


class Baseline(Section):
    """Checks by name."""

    checks: dict[Label, Check]


def read(path: Path) -> Baseline:
    """The baseline in a file. Raises BadInput, one line with file and key, for an invalid one."""
    found = document.read(path)
    try:
        baseline = Baseline.model_validate(found)
    except ValidationError as error:
        raise BadInput(f"{path}: {complaint(error, Baseline, {})}") from None
    if not baseline.checks:
        raise BadInput(f"{path}: checks: none; expected at least one, by name")
    return baseline


def outcomes(baseline: Baseline, folder: Path, settings: Sequence[str] = ()) -> list[Outcome]:
    """The outcome of each check, in order; scenario files are relative to `folder`.

    settings  overrides of every scenario

    A check that cannot be run is `Broken` and does not stop the others.
    """
    return [outcome(name, check, folder, settings) for name, check in baseline.checks.items()]


def outcome(name: str, check: Check, folder: Path, settings: Sequence[str]) -> Outcome:
    """The outcome of one check."""
    try:
        scenario = load(folder / check.scenario, [*check.set, *settings])
        if check.policy is not None:
            scenario = with_policy(scenario, check.policy)
        summary = run(scenario).summary
        found = {one: metric(summary, one) for one in check.metrics}
    except (ValueError, OSError) as error:
        return Outcome(name, (), Broken(" ".join(str(error).split())))
    return Outcome(name, tuple(compared(one, check.metrics[one], now) for one, now in found.items()))


def compared(name: str, given: Expected, now: Value) -> Compared:
    """One metric compared with its recorded value."""
    before: Any = given.value
    same = before == now and isinstance(before, str) == isinstance(now, str)
    if given.within is not None and isinstance(now, int | float):
        same = given.within.allows(before, now)
    return Compared(name, before, now, str(given.within) if given.within else "exact", same)


def place(text: str, check: str, metric: str) -> yaml.Node:
    """The node of a recorded value in the text of a baseline."""
    node: yaml.Node | None = yaml.compose(text, Loader=document.Loader)
    for key in ("checks", check, "metrics", metric):
        node = entry(node, key)
    assert node is not None
    return entry(node, "value") if isinstance(node, yaml.MappingNode) else node


def entry(node: yaml.Node | None, key: str) -> yaml.Node:
    """The value of a key in a mapping node that has it."""
    assert isinstance(node, yaml.MappingNode)
    for name, value in node.value:
        if str(name.value) == key:
            found: yaml.Node = value
            return found
    raise BadInput(f"{key}: is not written where it is used; expected it without << in a baseline")


def line(text: str, check: str, metric: str) -> int:
    """The line, from 1, on which a value is recorded."""
    return int(place(text, check, metric).start_mark.line) + 1


def recorded(text: str, values: Iterable[tuple[str, str, Value]]) -> str:
    """The text of a baseline with new values, each (check, metric, value); everything else stays."""
    edits = []
    for check, name, value in values:
        node = place(text, check, name)
        start, end = node.start_mark.index, node.end_mark.index
        gap = " " if text[start - 1] == ":" else ""
        edits.append((start, end, gap + written(value)))
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def written(value: Value) -> str:
    """A value as YAML that reads back the same."""
    return "null" if value is None else json.dumps(value, ensure_ascii=False)
