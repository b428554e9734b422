"""One run as tables on the console: its facts, latencies, tenants and replicas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from reports import latency_origin
from reports.latency_origin import LATENCIES
from reports.text.rich_tables import add_numbers, grid_of, headed_table
from reports.text.run_facts import GROWS, facts, window_facts
from reports.units import duration, percent, printable

MOST_TENANTS = 20
MOST_REPLICAS = 20
STATISTICS = ("mean", "p50", "p90", "p95", "p99", "max")


def summary_table(summary: Mapping[str, Any]) -> Group:
    """The summary of a run (the object that `--json` prints) as tables for the console.

    Facts and latencies of the run, the same of its measuring window if it has one, tenants and replicas if there are
    several. Values that are undefined are `-`. At most 20 tenants, those with the most requests, and 20 replicas are
    listed; a line says how many are not.
    """
    parts: list[RenderableType] = [_title(summary), Text(), grid_of(facts(summary)), latency_table(summary)]
    if summary["measured"] is not None:
        parts += [grid_of(window_facts(summary["measured"])), latency_table(summary["measured"])]
    if summary["queue_grows"]:
        parts.append(Text(f"Unstable: {GROWS}", style="bold"))
    if len(summary["tenants"]) > 1:
        parts.extend(_tenants(summary["tenants"]))
        if note := latency_origin.note([summary]):
            parts.append(Text(note))
    if len(summary["replicas"]) > 1:
        parts.append(replica_table(summary["replicas"]))
    return Group(*parts)


def replica_table(replicas: Sequence[Mapping[str, Any]]) -> Table:
    """A row per replica, numbered from 0, for at most 20 of them."""
    table = headed_table()
    add_numbers(table, "replica", "requests", "steps", "occupancy", "busy", "output tokens", "preemptions")
    for number, replica in enumerate(replicas[:MOST_REPLICAS]):
        table.add_row(
            str(number),
            f"{replica['requests']['injected']:,}",
            f"{replica['steps']:,}",
            percent(replica["occupancy"]),
            percent(replica["busy"]),
            f"{replica['output_tokens']:,}",
            f"{replica['preemptions']:,}",
        )
    if len(replicas) > MOST_REPLICAS:
        table.caption = f"and {len(replicas) - MOST_REPLICAS} replicas more"
    return table


def latency_table(summary: Mapping[str, Any]) -> Table:
    """A row per latency of a run or a measuring window: sample size, mean, percentiles and maximum."""
    table = headed_table()
    table.add_column("latency", no_wrap=True)
    add_numbers(table, "n", *STATISTICS)
    for key, name in latency_origin.named(summary).items():
        found = summary[key]
        table.add_row(name, f"{found['n']:,}", *(duration(found[statistic]) for statistic in STATISTICS))
    return table


def _title(summary: Mapping[str, Any]) -> Text:
    names = f"{printable(summary['scenario'])}, {printable(summary['policy'])}"
    if "predictor" in summary:
        names += f" (predictor: {printable(summary['predictor'])})"
    return Text.assemble((names, "bold"), (f"   seed {summary['seed']}, log {summary['log_sha256'][:12]}", "dim"))


def _tenants(tenants: Mapping[str, Mapping[str, Any]]) -> Iterable[RenderableType]:
    table = headed_table()
    table.add_column("tenant", overflow="fold", min_width=8)
    shown = [(key, which) for key in ("wait_s", "ttft_s", "e2e_s") for which in ("mean", "p99")]
    add_numbers(table, "requests", "finished", *(f"{LATENCIES[key]}\n{which}" for key, which in shown))
    by_size = sorted(tenants.items(), key=lambda item: -item[1]["requests"]["injected"])
    for name, found in by_size[:MOST_TENANTS]:
        times = (duration(found[key][which]) for key, which in shown)
        counts = (f"{found['requests'][key]:,}" for key in ("injected", "finished"))
        table.add_row(Text(printable(name)), *counts, *times)
    yield table
    if len(by_size) > MOST_TENANTS:
        more = len(by_size) - MOST_TENANTS
        yield Text(f"{more:,} more tenants, none with more requests than these, are not listed")
