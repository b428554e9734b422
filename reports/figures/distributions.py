"""Latency distributions as survival functions: for every time, the share of requests that took longer.

Shares are on a logarithmic axis, because the tail matters: the 99th percentile is read off at 1%.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator
from numpy.typing import NDArray

from reports.figures import style
from reports.units import tick_label

PANELS = {
    "wait_s": ("wait", "queue entry to admission"),
    "ttft_s": ("TTFT", "queue entry to first token"),
    "tpot_s": ("TPOT", "per output token after the first"),
    "e2e_s": ("E2E", "queue entry to last token"),
}
MOST_POINTS = 4_000
WIDE_RANGE = 30.0

Floats = NDArray[np.float64]


def latency_distributions(requests: Mapping[str, pd.DataFrame]) -> Figure:
    """A panel for each of wait, TTFT, TPOT and E2E with a line per run; the legend gives the sample sizes.

    `requests` maps the name of a run to a frame with the columns `wait_s`, `ttft_s`, `tpot_s` and `e2e_s` of
    `sim.accounting.frames.requests_frame` (seconds, NaN where undefined). A line covers the requests that have the
    latency; the legend says if there are others. The time axis is logarithmic if the positive times span a factor of
    30 or more; times of 0 are then left of it. Raises ValueError without runs.
    """
    if not requests:
        raise ValueError("no requests to draw")
    figure = style.figure(10.0, 7.2)
    grid = figure.subplots(2, 2)
    for axes, (column, (name, meaning)) in zip(grid.flat, PANELS.items(), strict=True):
        style.title(axes, name, meaning)
        _panel(axes, {policy: frame[column].to_numpy(dtype="float64") for policy, frame in requests.items()})
    for axes in grid[:, 0]:
        axes.set_ylabel("share of requests that took longer", fontsize=style.NORMAL, color=style.STRONG)
    return figure


def survival(times: Floats) -> tuple[Floats, Floats]:
    """Ascending distinct times, and the share of samples that are longer than each: two arrays of one length.

    Of more than 4,000 distinct times the last 2,000 are kept and 2,000 of the others, evenly by rank; points that are
    kept are exact. Empty arrays without samples.
    """
    if not len(times):
        return np.empty(0), np.empty(0)
    values, counts = np.unique(times, return_counts=True)
    longer = (len(times) - np.cumsum(counts)) / len(times)
    if len(values) > MOST_POINTS:
        tail = len(values) - MOST_POINTS // 2
        bulk = np.linspace(0, tail, MOST_POINTS // 2, endpoint=False, dtype=np.int64)
        kept = np.concatenate([bulk, np.arange(tail, len(values))])
        values, longer = values[kept], longer[kept]
    return values, longer


def _panel(axes: Axes, samples: Mapping[str, Floats]) -> None:
    style.bare(axes, "bottom", "left")
    present = {name: times[~np.isnan(times)] for name, times in samples.items()}
    pooled = np.concatenate(list(present.values()))
    if not len(pooled):
        axes.set_xticks([])
        axes.set_yticks([])
        axes.text(0.5, 0.5, "no samples", transform=axes.transAxes, ha="center", color=style.FAINT)
        return
    left = _time_axis(axes, pooled)
    _share_axis(axes, max(map(len, present.values())))
    lines, labels = [], []
    for place, (name, times) in enumerate(present.items()):
        values, longer = survival(times)
        colour, dashes = style.line(place)
        (line,) = axes.plot(
            np.maximum(np.concatenate([[left], values]), left),
            np.concatenate([[1.0], longer]) if len(values) else np.array([np.nan]),
            drawstyle="steps-post",
            color=colour,
            linestyle=dashes,
            linewidth=1.6,
        )
        lines.append(line)
        asked = f" of {len(samples[name]):,}" if len(times) < len(samples[name]) else ""
        labels.append(f"{name} (n = {len(times):,}{asked})")
    style.legend(axes, lines, labels, loc="lower left", handlelength=2.6)


def _time_axis(axes: Axes, pooled: Floats) -> float:
    """Set the scale, limits and ticks of the time axis for these samples; return its left limit."""
    positive = pooled[pooled > 0]
    low, high = (float(positive.min()), float(positive.max())) if len(positive) else (0.0, 0.0)
    if high > WIDE_RANGE * low > 0:
        left = low / 1.3
        axes.set_xscale("log")
        axes.set_xlim(left, high * 1.3)
        steps = (1.0, 2.0, 5.0) if high / low < 100 else (1.0,)
        axes.xaxis.set_major_locator(LogLocator(subs=steps, numticks=6))
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        low = float(pooled.min())
        margin = 0.05 * (high - low) or 0.05 * high or 0.05
        left = low - margin
        axes.set_xlim(left, high + margin)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6) if high > low else FixedLocator([low]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda seconds, _: tick_label(seconds)))
    return left


def _share_axis(axes: Axes, most: int) -> None:
    lowest = 0.5 / most
    axes.set_yscale("log")
    axes.set_ylim(lowest, 1.15)
    shares = [share for share in (1, 0.5, 0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7) if share >= lowest]
    axes.set_yticks(shares, [f"{100 * share:g}%" for share in shares])
    axes.yaxis.set_minor_locator(NullLocator())
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.7)
    axes.set_axisbelow(True)
