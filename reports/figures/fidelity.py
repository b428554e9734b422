"""A prediction compared with a measured run: quantile-quantile plots, and both runs over time.

On the diagonal of a panel the two distributions agree; below it the predicted times are too short.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.figures import style

PANELS = {"ttft_s": "TTFT", "tpot_s": "TPOT", "e2e_s": "E2E"}
SHARES = np.concatenate([np.linspace(0, 0.99, 100), [0.995, 0.999, 1.0]])
SERIES = {"in_flight": "requests in flight", "without_token": "without their first token"}


def fidelity(name: str, pairs: pd.DataFrame, series: pd.DataFrame) -> Figure:
    """Quantile-quantile plots of TTFT, TPOT and E2E above two series over time, measured and predicted.

    `pairs` has a row per request and, for each metric of PANELS, the columns `<metric>_measured` and
    `<metric>_predicted` (s). `series` has the column `t` (s) and, for each name in SERIES, `<name>_measured` and
    `<name>_predicted` (counts). A metric or series without samples has an empty panel.
    """
    figure = style.figure(11.0, 6.4)
    grid = figure.add_gridspec(2, 6)
    for place, (metric, title) in enumerate(PANELS.items()):
        quantiles(
            figure.add_subplot(grid[0, 2 * place : 2 * place + 2]), title, name if not place else "", pairs, metric
        )
    for place, (column, title) in enumerate(SERIES.items()):
        over_time(figure.add_subplot(grid[1, 3 * place : 3 * place + 3]), title, series, column)
    return figure


def quantiles(axes: Axes, title: str, remark: str, pairs: pd.DataFrame, metric: str) -> None:
    """Predicted over measured quantiles of one metric; those above 0.99 as circles."""
    style.title(axes, title, remark)
    style.bare(axes, "bottom", "left")
    columns = [f"{metric}_{side}" for side in ("measured", "predicted")]
    known = pairs[columns].dropna() if all(column in pairs for column in columns) else pd.DataFrame()
    if known.empty:
        no_samples(axes)
        return
    measured, predicted = (np.quantile(known[column].to_numpy(np.float64), SHARES) for column in columns)
    least, most = min(measured[0], predicted[0]), max(measured[-1], predicted[-1])
    axes.plot([least, most], [least, most], color=style.EDGE, linewidth=1.0)
    bulk = SHARES <= 0.99
    axes.plot(measured[bulk], predicted[bulk], ".", color=style.COLOURS[0], markersize=4)
    axes.plot(measured[~bulk], predicted[~bulk], "o", color=style.COLOURS[1], markersize=4, fillstyle="none")
    axes.set_xlabel("measured, s", fontsize=style.SMALL, color=style.STRONG)
    axes.set_ylabel("predicted, s", fontsize=style.SMALL, color=style.STRONG)


def over_time(axes: Axes, title: str, series: pd.DataFrame, column: str) -> None:
    """One series of both runs over time."""
    style.title(axes, title, "")
    style.bare(axes, "bottom", "left")
    if series.empty:
        no_samples(axes)
        return
    lines = []
    for place, side in enumerate(("measured", "predicted")):
        colour, dashes = style.line(place)
        lines += axes.plot(series["t"], series[f"{column}_{side}"], color=colour, linestyle=dashes, linewidth=1.2)
    style.legend(axes, lines, ["measured", "predicted"], loc="best")
    axes.set_xlabel("s", fontsize=style.SMALL, color=style.STRONG)
    axes.set_ylim(bottom=0)


def no_samples(axes: Axes) -> None:
    """The text of an empty panel."""
    axes.text(0.5, 0.5, "no samples", transform=axes.transAxes, ha="center", color=style.FAINT)
