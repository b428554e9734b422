"""Replications over several seeds: a table with confidence intervals, sentences, and an object for JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from reports.latency_origin import FROM_SENT
from reports.statistics.intervals import Estimate
from reports.statistics.replications import ReplicationMetric, Replications, sentence
from reports.text.rich_tables import headed_table
from reports.units import ABSENT, percent, printable, significant, unit_of

UNBOUNDED = "..."
NEVER = "never"


def replications_table(found: Replications) -> Group:
    """A row per metric, a column per policy: the estimate with its interval, of all requests and without the warm-up.

    Below it the sample sizes and what the numbers leave out, then the differences of each policy from the first one.
    """
    table = headed_table()
    table.add_column("", no_wrap=True)
    for policy in found.runs:
        label = f"{printable(policy)} (unstable)" if found.unstable(policy) else printable(policy)
        table.add_column(label, justify="right", no_wrap=True)
    for metric in found.metrics:
        for warm in (False, True) if metric.latency else (False,):
            estimates = [found.estimate(policy, metric, warm) for policy in found.runs]
            if any(estimates):
                unit, cells = columns(metric, estimates)
                head = f"  {ABSENT} warm-up" if warm else f"{metric.name}, {unit}".removesuffix(", ")
                table.add_row(Text(head), *cells, style="dim" if warm else None)
    title = Text(f"{seeds_of(found)}, the same requests for every policy; {percent_of(found)} intervals")
    parts: list[RenderableType] = [title, table, *(Text(line) for line in [*footing(found), *differences(found)])]
    return Group(*parts)


def columns(metric: ReplicationMetric, estimates: list[Estimate | None]) -> tuple[str, list[str]]:
    """The unit that fits a row, and a cell per estimate: `2.05 [1.9, 2.2]`."""
    values = [estimate.value for estimate in estimates if estimate and math.isfinite(estimate.value)]
    length, unit = unit_of(values) if metric.kind == "time" else (1.0, "%" if metric.kind == "share" else metric.unit)

    def number(value: float) -> str:
        if math.isinf(value):
            return UNBOUNDED
        return f"{100 * value:.1f}" if metric.kind == "share" else significant(value / length)

    cells = []
    for estimate in estimates:
        if estimate is None:
            cells.append(ABSENT)
        elif math.isinf(estimate.value):
            cells.append(NEVER)
        else:
            cells.append(f"{number(estimate.value)} [{number(estimate.low)}, {number(estimate.high)}]")
    return unit, cells


def differences(found: Replications) -> list[str]:
    """The differences of each other policy from the first, and the metrics in which there is none."""
    first, *others = found.runs
    lines = []
    for other in others:
        pairs = [(metric, found.difference(metric, first, other)) for metric in found.metrics]
        known = [(metric, each) for metric, each in pairs if each.estimate is not None]
        names = (printable(first), printable(other))
        if found.unstable(first) or found.unstable(other):
            lines.append(
                f"{names[0]} and {names[1]}: a queue grows, so these differences hold for runs of this length only."
            )
        lines += [sentence(names, metric.name, each, writer(metric)) for metric, each in known if each.differ]
        same = [metric.name for metric, each in known if not each.differ]
        if same:
            lines.append(f"{names[0]} and {names[1]} are not told apart in {', '.join(same)}.")
    if others:
        lines.append(
            f"Differences are the second's value minus the first's, seed by seed; each at {percent_of(found)} alone."
        )
    return lines


def footing(found: Replications) -> list[str]:
    """Sample sizes, the warm-up, requests that never ended, and queues that grow."""
    lines = []
    requests = {policy: found.censored(policy) for policy in found.runs}
    counts = sorted({n for _, n in requests.values()})
    listed = " or ".join(f"{n:,}" for n in counts)
    lines.append(f"n: {len(found.seeds)} runs, {listed} requests; percentiles are of all requests together.")
    cuts = [run.cut.samples for runs in found.runs.values() for run in runs]
    share = sum(cuts) / max(sum(n for _, n in requests.values()), 1)
    lines.append(f"- warm-up: without the first {share:.1%} of the requests, cut run by run (MSER-5 on TTFT).")
    if any(run.whole.get("client_wait_s") for runs in found.runs.values() for run in runs):
        lines.append(FROM_SENT)
    for policy, (missing, n) in requests.items():
        if missing:
            lines.append(
                f"{printable(policy)}: {missing:,} of {n:,} requests ({percent(missing / n)}) never ended; "
                "means leave them out, percentiles count them as longest."
            )
        if count := found.unstable(policy):
            lines.append(f"{printable(policy)}: unstable, the queue grows in {count} of {len(found.seeds)} runs.")
    return lines


def writer(metric: ReplicationMetric) -> Any:
    """The function that formats a difference in this metric, with its unit."""

    def written(value: float) -> str:
        if math.isinf(value):
            return UNBOUNDED
        if metric.kind == "share":
            return f"{100 * value:.1f} points"
        length, unit = unit_of([value]) if metric.kind == "time" else (1.0, metric.unit)
        return f"{significant(value / length)} {unit}".strip()

    return written


def seeds_of(found: Replications) -> str:
    """The number of seeds, the first and the last, in words."""
    return f"{len(found.seeds)} seeds ({found.seeds[0]} to {found.seeds[-1]})"


def percent_of(found: Replications) -> str:
    """The confidence as a percentage."""
    return f"{100 * found.confidence:g}%"


def replications_json(found: Replications) -> dict[str, Any]:
    """Estimates and differences as an object for JSON: times in seconds, None for infinite or undefined values."""
    first, *others = found.runs
    return {
        "seeds": list(found.seeds),
        "confidence": found.confidence,
        "policies": {policy: of_policy(found, policy) for policy in found.runs},
        "differences": [
            {
                "first": first,
                "second": other,
                "metric": metric.key,
                **of_estimate(each.estimate),
                "left_out": each.left_out,
                "differ": each.differ,
            }
            for other in others
            for metric in found.metrics
            for each in [found.difference(metric, first, other)]
        ],
    }


def of_policy(found: Replications, policy: str) -> dict[str, Any]:
    """The estimates of one policy, with and without the warm-up, as an object for JSON."""
    missing, n = found.censored(policy)
    return {
        "requests": n,
        "censored": missing,
        "unstable_runs": found.unstable(policy),
        "warm_up_requests": [run.cut.samples for run in found.runs[policy]],
        "metrics": {metric.key: of_estimate(found.estimate(policy, metric)) for metric in found.metrics},
        "after_warm_up": {
            metric.key: of_estimate(found.estimate(policy, metric, warm=True))
            for metric in found.metrics
            if metric.latency
        },
    }


def of_estimate(estimate: Estimate | None) -> Mapping[str, Any]:
    """An estimate as an object for JSON."""
    if estimate is None:
        return {"value": None, "low": None, "high": None, "n": 0}
    finite = {
        name: value if math.isfinite(value) else None
        for name, value in (("value", estimate.value), ("low", estimate.low), ("high", estimate.high))
    }
    return {**finite, "n": estimate.n}
