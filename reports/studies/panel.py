"""Shared parts of the studies' figures: means over seeds with intervals, lines through them, labelled axes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from reports.figures import style
from reports.statistics.intervals import Estimate, mean

if TYPE_CHECKING:
    import pandas as pd


def over_seeds(frame: pd.DataFrame, by: str, value: str) -> dict[Any, Estimate]:
    """The mean of the column `value` with its interval, for each value of the column `by` in ascending order."""
    return {key: mean(group[value].to_numpy(float)) for key, group in frame.groupby(by, sort=True)}


def line(axes: Axes, place: int, points: Sequence[tuple[float, Estimate]], scale: float = 1.0) -> Line2D:
    """Draw line number `place` through (x, estimate) points with error bars; `scale` multiplies the values."""
    colour, dashes = style.line(place)
    ordered = sorted(points, key=lambda point: point[0])
    x = [at for at, _ in ordered]
    y = [scale * found.value for _, found in ordered]
    reach = np.array([scale * min(found.high - found.value, found.value) for _, found in ordered])
    axes.errorbar(x, y, yerr=reach, color=colour, linestyle="none", elinewidth=0.8, capsize=2)
    (drawn,) = axes.plot(x, y, color=colour, linestyle=dashes, marker=".", markersize=4, linewidth=1.3)
    return drawn


def hollow(axes: Axes, place: int, points: Sequence[tuple[float, float]]) -> None:
    """Mark points of line number `place` as hollow: in these runs the queue grows."""
    axes.plot(
        [x for x, _ in points],
        [y for _, y in points],
        marker="o",
        markersize=6,
        markerfacecolor="white",
        markeredgecolor=style.line(place)[0],
        linestyle="none",
    )


def label(axes: Axes, title: str, remark: str, across: str, up: str) -> None:
    """Set the title, the remark after it, and the labels of the x and y axes of a panel."""
    style.bare(axes, "left", "bottom")
    style.title(axes, title, remark)
    axes.set_xlabel(across, fontsize=style.SMALL, color=style.STRONG)
    axes.set_ylabel(up, fontsize=style.SMALL, color=style.STRONG)


def policy_of(text: str) -> tuple[str, dict[str, Any]]:
    """The name and the options of a policy as a sweep's column holds it: `fcfs`, `{"sjf": {"error": 0.5}}`."""
    if not text.startswith("{"):
        return text, {}
    ((name, options),) = json.loads(text).items()
    return name, options
