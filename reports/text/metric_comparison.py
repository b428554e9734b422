"""Metrics compared over several runs: the values as printed, and which runs have the best.

Which metrics are compared follows from their declarations in `sim.accounting.metrics`. Values that print alike are
equal, so that a difference that is not shown is no difference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from reports.units import ABSENT, duration, percent, significant, unit_of
from sim.accounting.metric import Best, Value
from sim.accounting.metrics import chosen

Summary = Mapping[str, Any]
Kind = Literal["time", "share", "rate", "count"]

NEVER = "never"
FIRST = ("occupancy", "makespan_s", "rates.output_tokens_per_s", "preemptions")
"""The first columns of a comparison, by their path in the summary."""
PAIR = ("mean", "p99")
"""Statistics of a latency that are shown side by side."""


@dataclass(frozen=True)
class Metric:
    """A value of a summary: its name in sentences and in a narrow header, how it is read, and which is best.

    `read` returns seconds for kind `time`, a fraction for `share`, a number of `unit` for the others; None if
    undefined.
    """

    subject: str
    header: str
    kind: Kind
    read: Callable[[Summary], float | None]
    superlative: Best = "lowest"
    unit: str = ""

    def better(self, values: Iterable[float]) -> float:
        """The best of these values."""
        return max(values) if self.superlative == "highest" else min(values)


@dataclass(frozen=True)
class MetricComparison:
    """A metric over runs: `values` (NaN if undefined), and `cells`, which are the values as text in `unit`.

    `best` holds the indices of the runs whose cell equals that of the best value; it is empty if all cells are equal
    or fewer than two runs have a value.
    """

    metric: Metric
    values: list[float]
    unit: str
    cells: list[str]
    best: frozenset[int]

    @property
    def all_equal(self) -> bool:
        """Whether the cells of all runs are equal."""
        return len(set(self.cells)) == 1

    @property
    def header(self) -> str:
        """The header of a narrow column, on two lines or more, with the unit."""
        space = " " if "\n" in self.metric.header else "\n"
        return f"{self.metric.header}{space}{self.unit}".strip()

    @property
    def title(self) -> str:
        """The header of a wide column, on one line, with the unit."""
        return f"{self.metric.subject}, {self.unit}".removesuffix(", ")


def compare(metrics: Sequence[Metric], runs: Sequence[Summary]) -> list[MetricComparison]:
    """Compare runs by metrics shown side by side: all their times are in the unit that fits the largest."""
    found = [[metric.read(run) for run in runs] for metric in metrics]
    present = (value for values in found for value in values if value is not None)
    unit = unit_of(filter(math.isfinite, present))
    return [_comparison(metric, values, unit) for metric, values in zip(metrics, found, strict=True)]


def _comparison(metric: Metric, found: Sequence[float | None], unit_of_time: tuple[float, str]) -> MetricComparison:
    values = [math.nan if value is None else value for value in found]
    present = [value for value in values if not math.isnan(value)]
    length, unit = unit_of_time if metric.kind == "time" else (1.0, metric.unit)
    cells = [_cell(metric.kind, value, length) for value in values]
    best: frozenset[int] = frozenset()
    if len(present) > 1 and len(set(cells)) > 1:
        winner = cells[values.index(metric.better(present))]
        best = frozenset(i for i, cell in enumerate(cells) if cell == winner)
    return MetricComparison(metric, values, unit, cells, best)


def worst_off(run: Summary) -> tuple[str, float] | None:
    """The tenant with the highest p99 TTFT, and that in s (infinite: no token); None for fewer than two tenants."""
    if len(run["tenants"]) < 2:
        return None
    times = {name: found["ttft_s"]["p99"] for name, found in run["tenants"].items()}
    all_times = {name: math.inf if time is None else time for name, time in times.items()}
    return max(all_times.items(), key=lambda item: item[1])


def _worst_time(run: Summary) -> float | None:
    found = worst_off(run)
    return None if found is None else found[1]


def value_at(run: Summary, path: str) -> Any:
    """The value at a dotted path of a summary; None if there is none."""
    here: Any = run
    for part in path.split("."):
        here = here.get(part) if isinstance(here, Mapping) else None
    return here


def kind_of(value: Value) -> Kind:
    """How a value is printed."""
    if value.unit == "s":
        return "time"
    if value.unit == "share":
        return "share"
    return "count" if value.type == "int64" else "rate"


def compared_value(path: str, value: Value) -> Metric:
    """A value of a declared metric as it is compared."""
    name, kind = value.name or path, kind_of(value)
    unit = "" if kind in ("time", "share") else value.unit
    return Metric(name, value.header or name, kind, lambda run: value_at(run, path), value.best, unit)


@cache
def declared(more: tuple[str, ...]) -> dict[str, Metric]:
    """The compared values of the built-in metrics and of `more`, by their path in a summary."""
    return {
        ".".join(path): compared_value(".".join(path), value)
        for metric in chosen(more)
        for path, value in metric.columns
        if value.best
    }


def further(runs: Iterable[Summary]) -> tuple[str, ...]:
    """The names of the metrics that the scenarios of these runs add to the built-in ones."""
    return tuple(dict.fromkeys(name for run in runs for name in run.get("metrics", ())))


def engine_metrics(runs: Sequence[Summary]) -> list[Metric]:
    """The compared metrics of the whole run, each with a column of its own."""
    found = declared(further(runs))
    paired = [f"{key}.{which}" for key in latencies(found) for which in PAIR]
    return [*(found[path] for path in ordered(found) if path not in paired), WORST_OFF]


def over_seeds(more: tuple[str, ...]) -> dict[str, Metric]:
    """The compared metrics of the whole run that are compared over several seeds too, by their path in a summary."""
    found = declared(more)
    paired = [f"{key}.{which}" for key in latencies(found) for which in PAIR]
    wanted = {".".join(path) for metric in chosen(more) for path, value in metric.columns if value.seeds}
    return {path: found[path] for path in ordered(found) if path in wanted and path not in paired}


def ordered(found: Mapping[str, Metric]) -> list[str]:
    """The paths of metrics in the order of the columns."""
    return [*FIRST, *(path for path in found if path not in FIRST)]


def latency_metrics(runs: Sequence[Summary]) -> list[tuple[Metric, Metric]]:
    """The mean and the 99th percentile of each compared latency."""
    found = declared(further(runs))
    return [(found[f"{key}.mean"], found[f"{key}.p99"]) for key in latencies(found)]


def latencies(found: Mapping[str, Metric]) -> list[str]:
    """The keys whose mean and 99th percentile are both compared."""
    keys = [path.removesuffix(".mean") for path in found if path.endswith(".mean")]
    return [key for key in keys if f"{key}.p99" in found]


def written(metric: Metric, value: float) -> str:
    """A value of a metric with its unit; `-` for NaN, `never` for infinity."""
    if math.isnan(value):
        return ABSENT
    if math.isinf(value):
        return NEVER
    if metric.kind == "time":
        return duration(value)
    if metric.kind == "share":
        return percent(value)
    number = f"{value:,.0f}" if metric.kind == "count" else significant(value)
    return f"{number} {metric.unit}".strip()


def _cell(kind: Kind, value: float, length: float) -> str:
    if math.isnan(value):
        return ABSENT
    if math.isinf(value):
        return NEVER
    if kind == "share":
        return percent(value)
    return f"{value:,.0f}" if kind == "count" else significant(value / length)


WORST_OFF = Metric("p99 TTFT of the worst-off tenant", "worst-off\nTTFT\np99", "time", _worst_time)
