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

from reports.text.contest import ENGINE, LATENCIES, Contest, Summary, hold, worst_off
from reports.text.verdict import labels, verdict
from reports.units import ABSENT, printable


def comparison_table(runs: Sequence[Summary]) -> Group:
    """Runs as two tables, of the engine and of latencies, and beneath them who wins what and by how much.

    The best of a column is bold and has a `*`; ties are all marked, and nothing is when all are equal. The
    sentences compare with the first run. Columns that no run has a value for are left out. Raises ValueError
    without runs.
    """
    names = labels(runs)
    tables = [_rich(names, contests, _worst_names(contests, runs)) for contests in _tables(runs)]
    return Group(*tables, *(Text(sentence) for sentence in verdict(runs)))


def comparison_markdown(runs: Sequence[Summary]) -> str:
    """What `comparison_table` shows, as GitHub tables and a list of sentences; the best of a column is bold.

    Raises ValueError without runs.
    """
    names = labels(runs)
    tables = [_markdown(names, contests, _worst_names(contests, runs)) for contests in _tables(runs)]
    listed = "".join(f"- {escaped(sentence)}\n" for sentence in verdict(runs))
    return "\n".join([*tables, listed] if listed else tables)


def _tables(runs: Sequence[Summary]) -> list[list[Contest]]:
    engine = [contest for metric in ENGINE for contest in hold([metric], runs)]
    latencies = [contest for pair in LATENCIES for contest in hold(pair, runs)]
    return [[c for c in group if set(c.cells) != {ABSENT}] for group in (engine, latencies)]


def _worst_names(contests: Sequence[Contest], runs: Sequence[Summary]) -> list[str]:
    """The worst-off tenant of each run, for the table that shows how badly off it is; else nothing."""
    if all(contest.metric is not ENGINE[-1] for contest in contests):
        return []
    found = [worst_off(run) for run in runs]
    return [ABSENT if worst is None else printable(worst[0]) for worst in found]


def _rich(names: Sequence[str], contests: Sequence[Contest], worst: Sequence[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("policy", overflow="fold", min_width=6)
    for contest in contests:
        table.add_column(contest.header, justify="right", no_wrap=True)
    if worst:
        table.add_column("worst-\noff\ntenant", overflow="fold", min_width=7)
    for run, name in enumerate(names):
        cells = [
            Text(f"{c.cells[run]}*", style="bold") if run in c.best else Text(f"{c.cells[run]} ") for c in contests
        ]
        table.add_row(Text(name), *cells, *(Text(tenant) for tenant in worst[run : run + 1]))
    return table


def _markdown(names: Sequence[str], contests: Sequence[Contest], worst: Sequence[str]) -> str:
    heads = ["policy", *(contest.title for contest in contests), *(["worst-off tenant"] if worst else [])]
    lines = [heads, ["---", *("---:" for _ in contests), *(["---"] if worst else [])]]
    for run, name in enumerate(names):
        cells = [f"**{c.cells[run]}**" if run in c.best else c.cells[run] for c in contests]
        lines.append([escaped(name), *cells, *map(escaped, worst[run : run + 1])])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def escaped(text: str) -> str:
    """Text as GitHub's Markdown shows it literally, in a table's cell too."""
    return re.sub(r"([\\`*_{}\[\]<>|#~$])", r"\\\1", text)
