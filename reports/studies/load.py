"""Latency over load, by policy. Points at which the queue grows are hollow: they would be higher in a longer run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from matplotlib.figure import Figure

from reports.figures import style
from reports.studies import panel

if TYPE_CHECKING:
    import pandas as pd

RATE = "workload_synthetic_arrivals_poisson_rate"
COLUMNS = {"ttft_s_mean": "mean TTFT", "ttft_s_p99": "p99 TTFT", "e2e_s_mean": "mean E2E"}


def unstable(frame: pd.DataFrame) -> dict[tuple[str, float], bool]:
    """Whether the queue grows in at least half of the runs, by policy and arrival rate."""
    share = frame["queue_grows"].astype(float).groupby([frame["policy"], frame[RATE]]).mean()
    return {cast(tuple[str, float], key): bool(value >= 0.5) for key, value in share.items()}


def draw(frame: pd.DataFrame) -> Figure:
    """A panel per latency, a line per policy."""
    figure = style.figure(9.5, 3.2)
    grown = unstable(frame)
    handles: dict[str, Any] = {}
    for axes, (column, title) in zip(figure.subplots(1, 3), COLUMNS.items(), strict=True):
        panel.label(axes, title, "", "requests/s", "seconds")
        for place, (policy, group) in enumerate(frame.groupby("policy", sort=False)):
            points = panel.over_seeds(group, RATE, column)
            handles[str(policy)] = panel.line(axes, place, list(points.items()))
            grows = [(at, each.value) for at, each in points.items() if grown[str(policy), at]]
            panel.hollow(axes, place, grows)
        axes.set_ylim(bottom=0)
    style.legend(figure, list(handles.values()), list(handles), loc="outside lower center", ncols=3)
    return figure


def lines(frame: pd.DataFrame) -> list[str]:
    """The latencies, a line per arrival rate and policy."""
    grown = unstable(frame)
    rows = []
    for key, group in frame.groupby([RATE, "policy"], sort=True):
        rate, policy = cast(tuple[float, str], key)
        parts = ", ".join(f"{title} {group[column].mean():.2f} s" for column, title in COLUMNS.items())
        rows.append(f"{rate:4} req/s {policy:5} {parts}{'  unstable' if grown[policy, rate] else ''}")
    return rows
