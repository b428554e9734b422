"""Latency against load, by policy; points at which a queue grows are hollow: a longer run's would be higher."""

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
    """By policy and rate, whether the queue grows in at least half of the runs."""
    share = frame["queue_grows"].astype(float).groupby([frame["policy"], frame[RATE]]).mean()
    return {cast(tuple[str, float], key): bool(value >= 0.5) for key, value in share.items()}


def draw(frame: pd.DataFrame) -> Figure:
    """A panel for each latency, a line for each policy."""
    figure = style.figure(9.5, 3.2)
    grown = unstable(frame)
    handles: dict[str, Any] = {}
    for axes, (column, title) in zip(figure.subplots(1, 3), COLUMNS.items(), strict=True):
        panel.name(axes, title, "", "requests/s", "seconds")
        for place, (policy, group) in enumerate(frame.groupby("policy", sort=False)):
            points = panel.over_seeds(group, RATE, column)
            handles[str(policy)] = panel.line(axes, place, list(points.items()))
            grows = [(at, each.value) for at, each in points.items() if grown[str(policy), at]]
            panel.hollow(axes, place, grows)
        axes.set_ylim(bottom=0)
    style.legend(figure, list(handles.values()), list(handles), loc="outside lower center", ncols=3)
    return figure


def lines(frame: pd.DataFrame) -> list[str]:
    """The latencies by rate and policy."""
    grown = unstable(frame)
    said = []
    for key, group in frame.groupby([RATE, "policy"], sort=True):
        rate, policy = cast(tuple[float, str], key)
        parts = ", ".join(f"{title} {group[column].mean():.2f} s" for column, title in COLUMNS.items())
        said.append(f"{rate:4} req/s {policy:5} {parts}{'  unstable' if grown[policy, rate] else ''}")
    return said
