"""Runs of several policies on the same requests side by side: a row per run, the best of each column marked."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from reports.text.comparison_sentences import labels, sentences
from reports.text.markdown_table import escaped, markdown_table
from reports.text.metric_comparison import (
    WORST_OFF,
    MetricComparison,
    Summary,
    compare,
    engine_metrics,
    latency_metrics,
    worst_off,
)
from reports.text.rich_tables import add_numbers, headed_table
from reports.units import ABSENT, printable


def comparison_table(runs: Sequence[Summary]) -> Group:
    """A table of engine metrics, one of latencies, and the sentences of `comparison_sentences`, for the console.

    The best of a column is bold and has a `*`; equal ones are all marked, none is if all are equal. Columns in which
    no run has a value are left out. Raises ValueError without runs.
    """
    names = labels(runs)
    tables = [_rich(names, compared, _worst_names(compared, runs)) for compared in _tables(runs)]
    return Group(*tables, *(Text(sentence) for sentence in sentences(runs)))


def comparison_markdown(runs: Sequence[Summary]) -> str:
    """What `comparison_table` shows as Markdown tables and a list; the best of a column is bold.

    Raises ValueError without runs.
    """
    names = labels(runs)
    tables = [_markdown(names, compared, _worst_names(compared, runs)) for compared in _tables(runs)]
    listed = "".join(f"- {escaped(sentence)}\n" for sentence in sentences(runs))
    return "\n".join([*tables, listed] if listed else tables)


def _tables(runs: Sequence[Summary]) -> list[list[MetricComparison]]:
    engine = [comparison for metric in engine_metrics(runs) for comparison in compare([metric], runs)]
    latencies = [comparison for pair in latency_metrics(runs) for comparison in compare(pair, runs)]
    return [[c for c in group if set(c.cells) != {ABSENT}] for group in (engine, latencies)]


def _worst_names(compared: Sequence[MetricComparison], runs: Sequence[Summary]) -> list[str]:
    """The worst-off tenant of each run, if the table has the column of its TTFT."""
    if all(comparison.metric is not WORST_OFF for comparison in compared):
        return []
    found = [worst_off(run) for run in runs]
    return [ABSENT if worst is None else printable(worst[0]) for worst in found]


def _rich(names: Sequence[str], compared: Sequence[MetricComparison], worst: Sequence[str]) -> Table:
    table = headed_table()
    table.add_column("policy", overflow="fold", min_width=6)
    add_numbers(table, *(comparison.header for comparison in compared))
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
    rows = []
    for run, name in enumerate(names):
        cells = [f"**{c.cells[run]}**" if run in c.best else c.cells[run] for c in compared]
        rows.append([escaped(name), *cells, *map(escaped, worst[run : run + 1])])
    return markdown_table(heads, rows, [False, *(True for _ in compared), *(False for _ in worst[:1])])
