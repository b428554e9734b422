"""Metrics of a sweep over one of its axes as a figure: a panel per metric, a line per setting, 95% intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from reports.figures import style
from reports.figures.distributions import WIDE_RANGE
from reports.units import printable

FLAT = 10.0
"""How many times the smallest value the largest may be before the scale is logarithmic."""
MOST_TICKS = 10
"""Most values of a numeric axis of which each has its tick."""
MOST_LETTERS = 80
"""Letters of all names of an axis, and two between them, that fit in a row; more are written aslant."""
APART = 0.08
"""The distance between the points of different lines over one name, in places."""


@dataclass(frozen=True)
class Point:
    """A mean over `n` runs with the bounds of its 95% interval, which are infinite for one run."""

    at: Any
    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Line:
    """The points of one setting."""

    name: str
    points: Sequence[Point]


@dataclass(frozen=True)
class Panel:
    """A metric and its unit over an axis, a line per setting."""

    metric: str
    unit: str
    across: str
    lines: Sequence[Line]

    @property
    def places(self) -> list[Any]:
        """The values of the axis, in order."""
        return sorted({point.at for line in self.lines for point in line.points})

    @property
    def numeric(self) -> bool:
        """Whether the axis has numbers; else it has names."""
        return all(isinstance(at, int | float) and not isinstance(at, bool) for at in self.places)


def sweep_figure(panels: Sequence[Panel]) -> Figure:
    """Panels below each other. Points over numbers are joined, points over names are not."""
    figure = style.figure(7, 0.6 + 2.6 * len(panels))
    handles: dict[str, Any] = {}
    for axes, panel in zip(figure.subplots(len(panels), 1, squeeze=False)[:, 0], panels, strict=True):
        style.bare(axes, "left", "bottom")
        handles |= _draw(axes, panel)
    if len(handles) > 1:
        style.legend(
            figure, list(handles.values()), list(handles), loc="outside lower center", ncols=min(len(handles), 4)
        )
    return figure


def _draw(axes: Axes, panel: Panel) -> dict[str, Any]:
    places = panel.places
    logarithmic = _scale(axes, panel)
    seeds = {point.n for line in panel.lines for point in line.points}
    counted = f"{min(seeds, default=0)} to {max(seeds, default=0)}" if len(seeds) > 1 else str(max(seeds, default=0))
    remark = "" if seeds <= {1} else f"mean over {counted} runs, 95% interval"
    style.title(axes, panel.metric, remark)
    unit = f"{panel.unit or 'number'}{', logarithmic' if logarithmic else ''}"
    axes.set_ylabel(unit, fontsize=style.SMALL, color=style.STRONG)
    style.literal(axes.set_xlabel(panel.across, fontsize=style.SMALL, color=style.STRONG))
    handles = {}
    for number, line in enumerate(panel.lines):
        colour, dashes = style.line(number)
        beside = 0.0 if panel.numeric else APART * (number - (len(panel.lines) - 1) / 2)
        across = [point.at if panel.numeric else places.index(point.at) + beside for point in line.points]
        handles[line.name] = axes.errorbar(
            across,
            [point.value for point in line.points],
            yerr=[[_below(point) for point in line.points], [_above(point) for point in line.points]],
            color=colour,
            linestyle=dashes if panel.numeric else "none",
            marker="o",
            markersize=4,
            linewidth=1.4,
            elinewidth=0.9,
            capsize=2,
        )
    if not panel.numeric:
        axes.set_xticks(range(len(places)), labels=[printable(place) for place in places])
        slanted = sum(len(str(place)) + 2 for place in places) > MOST_LETTERS
        for text in axes.get_xticklabels():
            style.literal(text)
            if slanted:
                text.set(rotation=25, ha="right", rotation_mode="anchor")
        axes.set_xlim(-0.5, len(places) - 0.5)
    elif len(places) <= MOST_TICKS:
        axes.set_xticks(places, labels=[f"{place:g}" for place in places])
        axes.xaxis.set_minor_formatter(NullFormatter())
    return handles


def _scale(axes: Axes, panel: Panel) -> bool:
    """Set the scales; returns whether that of the metric is logarithmic."""
    places, values = panel.places, [point.value for line in panel.lines for point in line.points]
    if panel.numeric and len(places) > 2 and places[0] > 0 and places[-1] > WIDE_RANGE * places[0]:
        axes.set_xscale("log")
    if values and min(values) > 0 and max(values) > FLAT * min(values):
        axes.set_yscale("log")
        return True
    return False


def _below(point: Point) -> float:
    """How far the interval goes down; 0 without one."""
    return point.value - point.low if math.isfinite(point.low) else 0.0


def _above(point: Point) -> float:
    """How far the interval goes up; 0 without one."""
    return point.high - point.value if math.isfinite(point.high) else 0.0
