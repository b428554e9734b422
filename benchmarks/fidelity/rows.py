"""A prediction beside the measurement: one row for one statistic of one metric of one run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan

import numpy as np

STATISTICS = ("mean", "p50", "p99")


@dataclass(frozen=True)
class Row:
    """suite, run, metric and statistic name it; `measured` and `predicted` are in one unit, seconds for latencies.

    fitted  the part of the prediction that was fitted on measured runs, in words; empty: nothing was
    """

    suite: str
    run: str
    metric: str
    statistic: str
    measured: float
    predicted: float
    fitted: str = ""

    @property
    def error(self) -> float:
        """Relative error, above 0 where the prediction is larger."""
        return self.predicted / self.measured - 1


def statistics(values: Iterable[float]) -> dict[str, float]:
    """Mean, p50 and p99 of the values that are not NaN; percentiles interpolate linearly."""
    known = np.array([value for value in values if not isnan(value)], np.float64)
    return {
        "mean": float(known.mean()),
        "p50": float(np.percentile(known, 50)),
        "p99": float(np.percentile(known, 99)),
    }


def compared(
    suite: str,
    run: str,
    measured: Mapping[str, Sequence[float]],
    predicted: Mapping[str, Sequence[float]],
    fitted: str = "",
) -> list[Row]:
    """A row for each statistic of each metric that both have, seconds per request."""
    rows = []
    for metric in measured:
        if metric in predicted:
            ours, theirs = statistics(predicted[metric]), statistics(measured[metric])
            rows += [Row(suite, run, metric, name, theirs[name], ours[name], fitted) for name in STATISTICS]
    return rows


def markdown(rows: Sequence[Row]) -> str:
    """The rows as a table of Markdown, in their order; times in the unit given."""
    lines = ["| run | metric | | measured | predicted | error | fitted |", "|---|---|---|---:|---:|---:|---|"]
    lines += [
        f"| {row.run} | {row.metric} | {row.statistic} | {row.measured:.4g} | {row.predicted:.4g} "
        f"| {row.error:+.1%} | {row.fitted or 'nothing'} |"
        for row in rows
    ]
    return "\n".join(lines) + "\n"
