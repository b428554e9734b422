"""Intervals of a run's metrics under draws of its step cost, as a table on the console."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group
from rich.text import Text

from reports import latency_origin
from reports.text.rich_tables import add_numbers, headed_table
from reports.units import duration, percent, printable, significant

STATISTICS = ("mean", "p50", "p99")
NOTED = 0.03
"""A median error of the step cost from which on it is printed."""


def uncertainty_table(summary: Mapping[str, Any], found: Mapping[str, Any]) -> Group:
    """A row per metric: its value in the run, and the interval of the draws (`--json`'s `uncertainty`)."""
    table = headed_table()
    table.add_column("metric", no_wrap=True)
    tail = (1 - found["share"]) / 2
    add_numbers(table, "run", percent(tail), percent(1 - tail))
    for key, name in latency_origin.named(summary).items():
        for statistic in STATISTICS:
            bounds = found["metrics"].get(key, {}).get(statistic)
            if bounds is not None:
                table.add_row(f"{name} {statistic}", *map(duration, (summary[key][statistic], *ends(bounds))))
    bounds = found["metrics"].get("rates", {}).get("output_tokens_per_s")
    if bounds is not None:
        values = (summary["rates"]["output_tokens_per_s"], *ends(bounds))
        table.add_row("output tokens/s", *map(significant, values))
    if "attainment" in found["metrics"]:
        values = (summary["attainment"], *ends(found["metrics"]["attainment"]))
        table.add_row("attainment", *map(percent, values))
    lines = [f"{found['draws']} draws of the step cost: {printable(found['source'])}"]
    decode, prompts = found["medians"]["decode"], found["medians"]["prompts"]
    if max(abs(decode - 1), abs(prompts - 1)) >= NOTED:
        lines.append(
            f"Steps of such costs were measured to last {decode:.2f} times the prediction (decodes alone) and "
            f"{prompts:.2f} times (with prompts): the draws are around that."
        )
    if found["growing"]:
        lines.append(f"The queue grows in {found['growing']} of the {found['draws']} draws.")
    return Group(table, *map(Text, lines))


def ends(bounds: Mapping[str, float]) -> tuple[float, float]:
    """Low and high."""
    return bounds["low"], bounds["high"]
