"""Line charts with a line per run: latency distributions, and queue, pages and occupancy over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from markupsafe import Markup

from reports.figures.distributions import PANELS, WIDE_RANGE, survival
from reports.page import interval_means, svg
from reports.page.report import SECOND, Run
from reports.units import duration, percent, significant, tick_label

INTERVALS = 400
Floats = svg.Floats


def latencies(runs: Sequence[Run]) -> list[tuple[str, str, Markup]]:
    """Name, caption and figure for each of wait, TTFT, TPOT and E2E: the share of requests that took longer."""
    found = []
    for column, (name, meaning) in PANELS.items():
        samples = [run.requests[column].to_numpy(dtype="float64") for run in runs]
        drawn = _distribution(f"{name}: share of requests that took longer", samples)
        found.append((name, f"{meaning}; {_sizes([run.name for run in runs], samples)}", drawn))
    return found


def _sizes(names: Sequence[str], samples: Sequence[Floats]) -> str:
    counts = [int(np.isfinite(times).sum()) for times in samples]
    if len(set(counts)) == 1:
        return f"n = {counts[0]:,}{' each' if len(names) > 1 else ''}"
    return ", ".join(f"{name}: n = {count:,}" for name, count in zip(names, counts, strict=True))


def _distribution(name: str, samples: Sequence[Floats]) -> Markup:
    box = svg.Box()
    present = [times[~np.isnan(times)] for times in samples]
    pooled = np.concatenate(present)
    if not len(pooled):
        return box.figure(name, svg.text(box.width / 2, box.height / 2, "no samples", "middle"))
    positive = pooled[pooled > 0]
    wide = len(positive) > 0 and float(positive.max()) > WIDE_RANGE * float(positive.min())
    if wide:
        x = box.x(float(positive.min()) / 1.3, float(positive.max()) * 1.3, log=True)
    else:
        low, high = float(pooled.min()), float(pooled.max())
        margin = 0.05 * (high - low) or 0.05 * high or 0.05
        x = box.x(max(0.0, low - margin), high + margin)
    y = box.y(0.5 / max(map(len, present)), 1.0, log=True)
    lines = []
    for place, times in enumerate(present):
        values, longer = survival(times)
        if len(values):
            across = x(np.maximum(np.concatenate([[x.low], values]), x.low))
            level = y(np.maximum(np.concatenate([[1.0], longer]), y.low))
            lines.append(svg.tag("path", d=svg.steps_path(across, level), class_="line", style=svg.look(place)))
    drawn = box.axes(x, y, tick_label, lambda share: f"{100 * share:g}%", "time", most=(7, 8))
    return box.figure(name, drawn, *lines)


def over_time(runs: Sequence[Run]) -> list[tuple[str, str, Markup]]:
    """Name, caption and figure for the queue, the pages held and occupancy, as means over equal intervals."""
    span = max(max(run.end - run.begin, 1) for run in runs) / SECOND
    each = [interval_means.edges(run, INTERVALS) for run in runs]
    length = duration(span / INTERVALS)
    total = max(run.summary["pages"]["total"] for run in runs)
    sorts: Sequence[
        tuple[str, str, Callable[[Run, interval_means.Whole], Floats], float | None, Callable[[float], str]]
    ] = (
        ("Queue", "requests waiting for their first admission", interval_means.queue, None, significant_or_zero),
        ("Pages in use", f"held by requests, of {total:,}", _pages, None, significant_or_zero),
        (
            "Occupancy",
            "slots that computed a token, of all slots, idle time included",
            _occupancy,
            1.0,
            percent_label,
        ),
    )
    found = []
    for name, meaning, read, top, label in sorts:
        series = [((over[:-1] - run.begin) / SECOND, read(run, over)) for run, over in zip(runs, each, strict=True)]
        caption = f"{meaning}; exact mean of every {length}"
        found.append((name, caption, _lines(name, series, span, top, label)))
    return found


def _pages(run: Run, over: interval_means.Whole) -> Floats:
    return interval_means.of_steps(run, run.steps["pages_used"].to_numpy(), over)


def _occupancy(run: Run, over: interval_means.Whole) -> Floats:
    working = run.steps["decode"].to_numpy() + run.steps["prefill"].to_numpy()
    return interval_means.of_steps(run, working, over) / max(run.slots, 1)


def significant_or_zero(value: float) -> str:
    """The label of a tick on an axis of numbers."""
    return f"{value:,g}" if value < 1 else f"{value:,.0f}" if value == round(value) else significant(value)


def percent_label(share: float) -> str:
    """The label of a tick on an axis of shares."""
    return percent(share).replace(".0%", "%")


def _lines(
    name: str,
    series: Sequence[tuple[Floats, Floats]],
    span: float,
    top: float | None,
    label: Callable[[float], str],
) -> Markup:
    box = svg.Box()
    highest = top or max((float(values.max()) for _, values in series if len(values)), default=0.0) * 1.05 or 1.0
    x, y = box.x(0.0, span), box.y(0.0, highest)
    lines = []
    for place, (times, values) in enumerate(series):
        across, level = x(np.append(times, span if not len(times) else times[-1])), y(np.append(values, values[-1:]))
        path = svg.steps_path(across, level[: len(across)])
        lines.append(svg.tag("path", d=path, class_="line", style=svg.look(place)))
    return box.figure(name, box.axes(x, y, tick_label, label, "time since the first request"), *lines)
