"""A workload as a figure: arrival rate, burstiness, length distributions, and hit rate of a prefix cache."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from reports.figures import style
from reports.figures.distributions import survival

SECOND = 10**9
MOST_BARS = 300
WINDOWS = 40

Integers = NDArray[np.int64]


def traffic(times: Integers | None, lengths: Mapping[str, Integers], lru: Mapping[int, float] | None) -> Figure:
    """Four panels; those without data say so.

    `times` are the arrivals in ascending order (ns); `lengths` maps names to arrays of token counts; `lru` maps the
    size of an LRU cache in blocks to the share of blocks found in it.
    """
    figure = style.figure(10.0, 7.2)
    grid = figure.subplots(2, 2)
    _counts(grid[0, 0], times)
    _burstiness(grid[0, 1], times)
    _lengths(grid[1, 0], lengths)
    _prefix_cache(grid[1, 1], lru)
    for axes in grid.flat:
        style.bare(axes, "bottom", "left")
    return figure


def dispersion(times: Integers) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Window lengths (s), and the index of dispersion (variance over mean) of the arrivals per window of each length.

    `times` are ascending (ns). Windows are from 0.1 s to a tenth of the span.
    """
    since = times - times[0]
    span = int(since[-1])
    lengths = np.unique(np.geomspace(SECOND / 10, max(span / 10, SECOND / 10), WINDOWS).astype(np.int64))
    windows, found = [], []
    for length in lengths.tolist():
        count = span // length
        inside = since[since < count * length]
        if count > 1 and len(inside):
            counts = np.unique(inside // length, return_counts=True)[1].astype(np.float64)
            windows.append(length / SECOND)
            found.append((counts**2).sum() / len(inside) - len(inside) / count)
    return np.array(windows), np.array(found)


def _counts(axes: Axes, times: Integers | None) -> None:
    style.title(axes, "arrivals", "requests per second, over time")
    if times is None or times[-1] == times[0]:
        _no_data(axes)
        return
    edges = np.linspace(times[0], times[-1], MOST_BARS + 1)
    counts = np.histogram(times, edges)[0] / (edges[1] - edges[0]) * SECOND
    axes.stairs(counts, edges / SECOND, fill=True, color=style.COLOURS[0])
    axes.set_xlabel("s", fontsize=style.SMALL)


def _burstiness(axes: Axes, times: Integers | None) -> None:
    style.title(axes, "burstiness", "variance over mean of the counts per window")
    if times is None or times[-1] == times[0]:
        _no_data(axes)
        return
    windows, found = dispersion(times)
    axes.axhline(1, color=style.EDGE, linewidth=1)
    axes.plot(windows, np.maximum(found, 1e-3), color=style.COLOURS[0], linewidth=1.6)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("window, s (the grey line is Poisson)", fontsize=style.SMALL)


def _lengths(axes: Axes, lengths: Mapping[str, Integers]) -> None:
    style.title(axes, "lengths", "share of requests that are longer")
    if not lengths:
        _no_data(axes)
        return
    lines = []
    for place, values in enumerate(lengths.values()):
        colour, dashes = style.line(place)
        found, longer = survival(values.astype(np.float64))
        lines += axes.plot(
            found, np.maximum(longer, 0.5 / len(values)), drawstyle="steps-post", color=colour, linestyle=dashes
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("tokens", fontsize=style.SMALL)
    style.legend(axes, lines, list(lengths), loc="lower left")


def _prefix_cache(axes: Axes, lru: Mapping[int, float] | None) -> None:
    style.title(axes, "prefix cache", "share of blocks found (LRU)")
    if not lru:
        _no_data(axes)
        return
    axes.plot(list(lru), list(lru.values()), color=style.COLOURS[0], marker="o", linewidth=1.6)
    axes.set_xscale("log")
    axes.set_ylim(0, 1)
    axes.set_xlabel("blocks in the cache", fontsize=style.SMALL)


def _no_data(axes: Axes) -> None:
    empty: Any = axes.text(0.5, 0.5, "not in the file", transform=axes.transAxes, ha="center", color=style.FAINT)
    style.literal(empty)
    axes.set_xticks([])
    axes.set_yticks([])
