"""Several runs of the same requests side by side: a row per policy, the winner of each column marked.

Knows nothing of what a policy does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from reports.text.comparison_sentences import labels, sentences
from reports.text.metric_comparison import (
    ENGINE_METRICS,
    LATENCY_METRICS,
    MetricComparison,
    Summary,
    compare,
    worst_off,
)
from reports.units import ABSENT, printable


def comparison_table(runs: Sequence[Summary]) -> Group:
    """Runs as two tables, of the engine and of latencies, and beneath them who wins what and by how much.

    The best of a column is bold and has a `*`; ties are all marked, and nothing is when all are equal. The
    sentences compare with the first run. Columns that no run has a value for are left out. Raises ValueError
    without runs.
    """
    names = labels(runs)
    tables = [_rich(names, compared, _worst_names(compared, runs)) for compared in _tables(runs)]
    return Group(*tables, *(Text(sentence) for sentence in sentences(runs)))


def comparison_markdown(runs: Sequence[Summary]) -> str:
    """What `comparison_table` shows, as GitHub tables and a list of sentences; the best of a column is bold.

    Raises ValueError without runs.
    """
    names = labels(runs)
    tables = [_markdown(names, compared, _worst_names(compared, runs)) for compared in _tables(runs)]
    listed = "".join(f"- {escaped(sentence)}\n" for sentence in sentences(runs))
    return "\n".join([*tables, listed] if listed else tables)


def _tables(runs: Sequence[Summary]) -> list[list[MetricComparison]]:
    engine = [comparison for metric in ENGINE_METRICS for comparison in compare([metric], runs)]
    latencies = [comparison for pair in LATENCY_METRICS for comparison in compare(pair, runs)]
    return [[c for c in group if set(c.cells) != {ABSENT}] for group in (engine, latencies)]


def _worst_names(compared: Sequence[MetricComparison], runs: Sequence[Summary]) -> list[str]:
    """The worst-off tenant of each run, for the table that shows how badly off it is; else nothing."""
    if all(comparison.metric is not ENGINE_METRICS[-1] for comparison in compared):
        return []
    found = [worst_off(run) for run in runs]
    return [ABSENT if worst is None else printable(worst[0]) for worst in found]


def _rich(names: Sequence[str], compared: Sequence[MetricComparison], worst: Sequence[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("policy", overflow="fold", min_width=6)
    for comparison in compared:
        table.add_column(comparison.header, justify="right", no_wrap=True)
    if worst:
        table.add_column("worst-\noff\ntenant", overflow="fold", min_width=7)
    for run, name in enumerate(names):
        cells = [
            Text(f"{c.cells[run]}*", style="bold") if run in c.best else Text(f"{c.cells[run]} ") for c in compared
        ]
        table.add_row(Text(name), *cells, *(Text(tenant) for tenant in worst[run : run + 1]))
    return table


def _markdown(names: Sequence[str], compared: Sequence[MetricComparison], worst: Sequence[str]) -> str:
    heads = ["policy", *(comparison.title for comparison in compared), *(["worst-off tenant"] if worst else [])]
    lines = [heads, ["---", *("---:" for _ in compared), *(["---"] if worst else [])]]
    for run, name in enumerate(names):
        cells = [f"**{c.cells[run]}**" if run in c.best else c.cells[run] for c in compared]
        lines.append([escaped(name), *cells, *map(escaped, worst[run : run + 1])])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def escaped(text: str) -> str:
    """Text as GitHub's Markdown shows it literally, in a table's cell too."""
    return re.sub(r"([\\`*_{}\[\]<>|#~$])", r"\\\1", text)
