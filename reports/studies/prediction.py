"""Latency over the error of predicted output lengths, as a multiple of the latency under first come, first served.

The ratio is taken seed by seed, on the same requests, so that the variation between seeds cancels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from reports.figures import style
from reports.statistics.intervals import Estimate, mean
from reports.studies import panel

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = {"e2e_s_mean": "mean E2E", "ttft_s_p99": "p99 TTFT"}
BASE = "fcfs"


def multiples(frame: pd.DataFrame, column: str) -> dict[str, list[tuple[float, Estimate]]]:
    """By policy: error of the predictions and mean ratio of the column to that of BASE, ascending by error."""
    base = frame[frame["policy"] == BASE].set_index("seed")[column]
    points: dict[str, list[tuple[float, Estimate]]] = {}
    for text, group in frame[frame["policy"] != BASE].groupby("policy", sort=True):
        name, options = panel.policy_of(str(text))
        ratio = group.set_index("seed")[column] / base
        label = f"{name}, preemptive" if options.get("preemptive") else name
        points.setdefault(label, []).append((float(options["error"]), mean(ratio.to_numpy(float))))
    return {name: sorted(each, key=lambda point: point[0]) for name, each in points.items()}


def draw(frame: pd.DataFrame) -> Figure:
    """A panel per latency, a line per policy; 1 is the latency under BASE, which uses no predictions."""
    figure = style.figure(8, 3.2)
    for axes, (column, title) in zip(figure.subplots(1, 2), COLUMNS.items(), strict=True):
        panel.label(axes, title, "", "error of predictions (sigma of its logarithm)", f"times that of {BASE}")
        axes.axhline(1, color=style.FAINT, linewidth=0.8, linestyle=(0, (2, 2)))
        handles: dict[str, Any] = {}
        for place, (name, each) in enumerate(multiples(frame, column).items()):
            handles[name] = panel.line(axes, place, each)
        axes.set_ylim(bottom=0)
    style.legend(figure, list(handles.values()), list(handles), loc="outside lower center", ncols=3)
    return figure


def lines(frame: pd.DataFrame) -> list[str]:
    """The ratios with their intervals, a line per policy and error."""
    rows = []
    middle, tail = (multiples(frame, column) for column in COLUMNS)
    for name, each in middle.items():
        for (error, first), (_, second) in zip(each, tail[name], strict=True):
            rows.append(f"{name:16} error {error:3g}: mean E2E {shown(first)}, p99 TTFT {shown(second)} of {BASE}'s")
    return rows


def shown(found: Estimate) -> str:
    """A ratio with its interval: `0.85 [0.80, 0.90]`."""
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"
