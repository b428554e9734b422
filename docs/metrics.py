"""The reference of the metrics and their JSON schema, from their declarations in `sim.accounting.metrics`."""

from __future__ import annotations

import json
from itertools import groupby

from sim.accounting.metric import Metric, Value
from sim.accounting.metrics import METRICS, schema

INTRODUCTION = (
    "Every metric of a run, from its declaration in `sim/accounting/keys/`. A metric is a key of the summary"
    " ([output.md](output.md)): one value, or several below it. A value is a column of a sweep, `ttft_s.p99` the"
    " column `ttft_s_p99`, unless it is named after *not in a sweep*. `NAME` stands for any name, `N` for a position"
    " in a list from 0. Where a value is said to be best, comparisons of runs have a column for it."
    " [summary.schema.json](summary.schema.json) is the JSON schema."
    " [architecture.md](architecture.md#nine-examples) shows how one is added."
)


def metrics_page(note: str) -> str:
    """The reference page; `note` says that it is generated."""
    rows = [f"| `{metric.key}` | {values(metric)} | {metric.about} |" for metric in METRICS.values()]
    table = "\n".join(["| key | values | meaning |", "|---|---|---|", *rows])
    return "\n\n".join(["# Metrics", note, INTRODUCTION, table]) + "\n"


def values(metric: Metric) -> str:
    """The values of a metric with their units, those that are no columns of a sweep last."""
    columns = {".".join(path[1:]) for path, _ in metric.columns}
    shown = []
    for is_column in (True, False):
        chosen = {path: value for path, value in metric.values.items() if (path in columns) == is_column}
        if chosen:
            shown.append(("" if is_column else "not in a sweep: ") + listed(chosen))
    return "; ".join(shown)


def listed(chosen: dict[str, Value]) -> str:
    """Values by path; neighbours of one kind together."""
    groups = groupby(chosen.items(), key=lambda item: kind(item[1]))
    return ", ".join(
        f"{' '.join(filter(None, (named(path) for path, _ in of)))} {words}".strip() for words, of in groups
    )


def named(path: str) -> str:
    """A path below a key."""
    return f"`{path.replace('*', 'NAME').replace('[]', 'N')}`" if path else ""


def kind(value: Value) -> str:
    """The unit of a value, or its type where it has none, and which way is better."""
    best = f", {value.direction} is better" if value.direction else ""
    return f"({value.unit or {'string': 'text', 'int64': 'count'}.get(value.type, 'number')}{best})"


def schema_file() -> str:
    """The JSON schema of the metrics in a summary."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"
