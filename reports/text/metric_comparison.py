"""One metric compared over several runs: the values as printed, and which runs have the best.

Values that print alike are equal, so that a difference that is not shown is no difference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from reports.units import ABSENT, percent, significant, unit_of

Summary = Mapping[str, Any]
Kind = Literal["time", "share", "rate", "count"]

NEVER = "never"
UNITS = {"share": "", "rate": "tok/s", "count": ""}


@dataclass(frozen=True)
class Metric:
    """A metric of a summary: its name in sentences and in a narrow header, how it is read, and which is best.

    `read` returns seconds for kind `time`, a fraction for `share`, tokens/s for `rate`, None if undefined.
    """

    subject: str
    header: str
    kind: Kind
    read: Callable[[Summary], float | None]
    superlative: Literal["highest", "lowest", "shortest", "fewest"] = "lowest"

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
    length, unit = unit_of_time if metric.kind == "time" else (1.0, UNITS[metric.kind])
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


def _statistic(latency: str, which: str) -> Callable[[Summary], float | None]:
    def read(run: Summary) -> float | None:
        value: float | None = run[latency][which]
        return value

    return read


def _cell(kind: Kind, value: float, length: float) -> str:
    if math.isnan(value):
        return ABSENT
    if math.isinf(value):
        return NEVER
    if kind == "share":
        return percent(value)
    return f"{value:,.0f}" if kind == "count" else significant(value / length)


ENGINE_METRICS = (
    Metric("occupancy", "occu-\npancy", "share", lambda run: run["occupancy"], "highest"),
    Metric("makespan", "make-\nspan", "time", lambda run: run["makespan_s"], "shortest"),
    Metric("output rate", "output", "rate", lambda run: run["rates"]["output_tokens_per_s"], "highest"),
    Metric("preemptions", "preemp-\ntions", "count", lambda run: run["preemptions"], "fewest"),
    Metric("attainment", "attain-\nment", "share", lambda run: run["attainment"], "highest"),
    Metric("maximum wait", "longest\nwait", "time", _statistic("wait_s", "max")),
    Metric("p99 TTFT of the worst-off tenant", "worst-off\nTTFT\np99", "time", _worst_time),
)
LATENCY_METRICS = tuple(
    (
        Metric(f"mean {name}", f"{name}\nmean", "time", _statistic(key, "mean")),
        Metric(f"p99 {name}", f"{name}\np99", "time", _statistic(key, "p99")),
    )
    for key, name in (("wait_s", "wait"), ("ttft_s", "TTFT"), ("tpot_s", "TPOT"), ("e2e_s", "E2E"))
)
