"""The tables of a report: cells with their text and the key by which the page sorts them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from reports import latency_origin, ledger_rows
from reports.page import fairness
from reports.page.report import Finding, Run
from reports.text import run_facts
from reports.text.metric_comparison import Metric, compare, engine_metrics, latency_metrics, worst_off, written
from reports.units import ABSENT, amount, duration, percent, printable, significant

SLOWEST = 10
MOST_ROWS = 500


@dataclass(frozen=True)
class Cell:
    """A cell: its text, its sort key, and whether it is the best of its column."""

    shown: str
    key: float | str
    best: bool = False

    @property
    def sort(self) -> str:
        """The key as the page's script reads it."""
        return str(self.key).replace("inf", "Infinity") if isinstance(self.key, float) else str(self.key)


@dataclass(frozen=True)
class Table:
    """A table: title, column headers, rows of cells, and a note on what it leaves out."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""

    @property
    def numeric(self) -> list[bool]:
        """For each column whether all its keys are numbers: these are right-aligned and sorted by value."""
        return [all(not isinstance(row[place].key, str) for row in self.rows) for place in range(len(self.heads))]


def word(text: object) -> Cell:
    """A cell of text, unprintable characters shown as escapes."""
    return Cell(printable(text), printable(text))


def time(seconds: float | None) -> Cell:
    """A cell with a time in seconds; `-` for None and NaN, sorted last."""
    missing = seconds is None or math.isnan(seconds)
    return Cell(duration(None if missing else seconds), math.inf if seconds is None or missing else seconds)


def count(value: float) -> Cell:
    """A cell with a count."""
    return Cell(f"{value:,}", value)


def share(value: float | None) -> Cell:
    """A cell with a fraction as a percentage; `-` for None, sorted first."""
    return Cell(percent(value), -1.0 if value is None else value)


def rate(value: float | None) -> Cell:
    """A cell with three significant digits; `-` for None and NaN, sorted first."""
    missing = value is None or math.isnan(value)
    return Cell(ABSENT, -1.0) if value is None or missing else Cell(significant(value), value)


def comparison(runs: Sequence[Run]) -> Table:
    """A row per run, a column per metric in which they differ, the best marked; equal metrics are in the note."""
    summaries = [run.summary for run in runs]
    groups: list[Sequence[Metric]] = [[metric] for metric in engine_metrics(summaries)]
    groups += latency_metrics(summaries)
    compared = [
        comparison
        for group in groups
        for comparison in compare(group, summaries)
        if set(comparison.cells) != {ABSENT}
    ]
    equal = [f"{c.metric.subject} {written(c.metric, c.values[0])}" for c in compared if c.all_equal]
    compared = [comparison for comparison in compared if not comparison.all_equal]
    worst = [worst_off(summary) for summary in summaries]
    heads = ["policy", *(comparison.title for comparison in compared)]
    found = []
    for place, run in enumerate(runs):
        cells = [word(run.name)]
        for comparison in compared:
            value = comparison.values[place]
            key = math.inf if math.isnan(value) else value
            cells.append(Cell(comparison.cells[place], key, place in comparison.best))
        found.append(cells + ([word(tenant[0] if (tenant := worst[place]) else ABSENT)] if any(worst) else []))
    notes = [f"Equal for all: {', '.join(equal)}."] if equal else []
    note = " ".join(filter(None, [*notes, latency_origin.note(summaries)]))
    return Table("Side by side", heads + (["worst-off tenant"] if any(worst) else []), found, note=note)


def latencies(runs: Sequence[Run]) -> Table:
    """A row per run and latency: sample size, share of censored requests, mean, percentiles, maximum."""
    statistics = ("mean", "p50", "p90", "p95", "p99", "max")
    found = []
    for run in runs:
        for key, name in latency_origin.named(run.summary).items():
            of = run.summary[key]
            found.append([word(run.name), word(name), count(of["n"]), share(of["censored_share"])])
            found[-1] += [time(of[one]) for one in statistics]
    return Table("Latencies", ["policy", "latency", "n", "censored", *statistics], found)


def ledger(runs: Sequence[Run]) -> Table:
    """The rows of each run's ledger that are not 0, in slot-steps and in slot-seconds."""
    found = []
    for run in runs:
        steps, seconds = run.summary["slot_steps"], run.summary["slot_seconds"]
        by_key = {row.key: amount for row, amount in ledger_rows.of(steps)}
        for row, spent in ledger_rows.of(seconds):
            taken = by_key.get(row.key, 0)
            if taken or spent:
                found.append(
                    [
                        word(run.name),
                        word(row.key),
                        word(row.meaning),
                        word(ledger_rows.advice(row, run.summary)),
                        count(int(taken)),
                        share(taken / steps["bought"] if steps["bought"] else None),
                        share(spent / seconds["bought"] if seconds["bought"] else None),
                    ]
                )
    heads = ["policy", "row", "what the slot did", "what to do about it", "slot-steps", "of them", "of slot-seconds"]
    return Table("The ledger, row by row", heads, found)


def tenants(runs: Sequence[Run]) -> Table:
    """A row per tenant and run, descending by service, at most 500 of them."""
    found = []
    for run in runs:
        found += [
            [
                word(one["tenant"]),
                word(run.name),
                count(one["requests"]),
                count(one["finished"]),
                count(one["service"]),
                share(one["share"]),
                rate(one["service_rate"]),
                time(one["mean_wait_s"]),
                time(one["worst_wait_s"]),
                count(one["preemptions"]),
            ]
            for one in fairness.tenants(run).to_dict("records")
        ]
    found.sort(key=lambda cells: -float(cells[4].key))
    heads = ["tenant", "policy", "requests", "finished", "service, tokens", "share", "service rate, tok/s"]
    note = f"{len(found) - MOST_ROWS:,} rows more are not listed" if len(found) > MOST_ROWS else ""
    heads += ["mean wait", "worst wait", "preemptions"]
    return Table("Tenants", heads, found[:MOST_ROWS], note=note)


def fairness_of(runs: Sequence[Run]) -> Table:
    """Jain's index of the tenants' service rates and of their service, and the longest wait, a row per run."""
    found = []
    for run in runs:
        table = fairness.tenants(run)
        by_rate, by_service = (
            fairness.jain(table[column].dropna().tolist()) for column in ("service_rate", "service")
        )
        worst = table["worst_wait_s"].max() if len(table) else None
        found.append([word(run.name), count(len(table)), rate(by_rate), rate(by_service), time(worst)])
    return Table("Fairness", ["policy", "tenants", "Jain of service rate", "Jain of service", "worst wait"], found)


def facts(runs: Sequence[Run]) -> Table:
    """The facts of each run in words, a column per run."""
    by_run = [dict(run_facts.facts(run.summary)) for run in runs]
    names = dict.fromkeys(name for one in by_run for name in one)
    found = [[word(name), *(word(one.get(name, ABSENT)) for one in by_run)] for name in names]
    return Table("In numbers", ["", *(run.name for run in runs)], found)


def slowest(runs: Sequence[Run]) -> Table:
    """The finished requests of each run with the longest E2E."""
    found = []
    for run in runs:
        ended = run.requests[run.requests["e2e_s"].notna()].nlargest(SLOWEST, "e2e_s")
        found += [
            [
                word(one["id"]),
                word(one["tenant"]),
                word(run.name),
                count(one["prompt"]),
                count(one["tokens"]),
                time(one["wait_s"]),
                time(one["ttft_s"]),
                time(one["e2e_s"]),
                count(one["preemptions"]),
            ]
            for one in ended.to_dict("records")
        ]
    heads = ["request", "tenant", "policy", "prompt", "tokens", "wait", "TTFT", "E2E", "preemptions"]
    note = latency_origin.note(run.summary for run in runs)
    return Table(f"The {SLOWEST} slowest requests of each run", heads, found, note=note)


def replicas(runs: Sequence[Run]) -> Table:
    """A row per replica of the runs that have several."""
    found = [
        [
            word(run.name),
            count(number),
            count(one["requests"]["injected"]),
            count(one["steps"]),
            share(one["occupancy"]),
            share(one["busy"]),
            count(one["output_tokens"]),
            count(one["preemptions"]),
        ]
        for run in runs
        if run.replicas > 1
        for number, one in enumerate(run.summary["replicas"])
    ]
    heads = ["policy", "replica", "requests", "steps", "occupancy", "busy", "output tokens", "preemptions"]
    return Table("Replicas", heads, found[:MOST_ROWS])


def of_finding(finding: Finding) -> Table:
    """The table of a finding without its hidden columns and those without any value; at most 500 rows of it."""
    frame = finding.frame.drop(columns=list(finding.hidden))
    frame = frame.loc[:, (frame.notna() & (frame != "")).any()]
    found = [
        [_value(value) for value in record] for record in frame.head(MOST_ROWS).itertuples(index=False, name=None)
    ]
    note = f"{len(frame) - MOST_ROWS:,} rows more are not listed" if len(frame) > MOST_ROWS else ""
    return Table(finding.title, [str(column) for column in frame], found, note=note)


def _value(value: object) -> Cell:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return Cell(ABSENT, math.inf)
    if isinstance(value, bool):
        return word("yes" if value else "no")
    if isinstance(value, int | float):
        return Cell(amount(value), value)
    return word(value)
