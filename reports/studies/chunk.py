"""Inter-token latency over time to first token, by token budget (the chunk size of prefills)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from reports.figures import style
from reports.studies import panel

if TYPE_CHECKING:
    import pandas as pd

RATE, BUDGET = "workload_synthetic_arrivals_poisson_rate", "engine_token_budget"


def draw(frame: pd.DataFrame) -> Figure:
    """p99 ITL over mean TTFT: a line per arrival rate, a point per token budget, hollow if the queue grows."""
    figure = style.figure(6.5, 4.2)
    axes = figure.subplots()
    panel.label(
        axes,
        "chunk size",
        "each point a token budget; hollow: the queue grows",
        "mean TTFT, ms",
        "p99 time between tokens, ms",
    )
    handles: list[Any] = []
    rates = sorted(frame[RATE].unique())
    for place, rate in enumerate(rates):
        mine = frame[frame[RATE] == rate]
        ttft, itl = (panel.over_seeds(mine, BUDGET, column) for column in ("ttft_s_mean", "itl_s_p99"))
        colour, dashes = style.line(place)
        x, y = [1000 * each.value for each in ttft.values()], [1000 * each.value for each in itl.values()]
        handles += axes.plot(x, y, color=colour, linestyle=dashes, marker=".", linewidth=1.2)
        grown = mine["queue_grows"].astype(float).groupby(mine[BUDGET]).mean()
        panel.hollow(axes, place, [(x[n], y[n]) for n, budget in enumerate(ttft) if grown[budget] > 0])
        if place == len(rates) - 1:
            for budget, across, up in zip(ttft, x, y, strict=True):
                axes.annotate(
                    f"{budget:,}", (across, up), xytext=(5, 3), textcoords="offset points", fontsize=style.SMALL
                )
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axis.set_minor_formatter(lambda value, _: "")
    style.legend(axes, handles, [f"{rate} requests/s" for rate in rates], loc="upper right")
    return figure


def lines(frame: pd.DataFrame) -> list[str]:
    """Mean TTFT and p99 ITL by arrival rate and token budget, a line each under a header."""
    rows = ["req/s  budget   mean TTFT     p99 ITL"]
    for (rate, budget), group in frame.groupby([RATE, BUDGET]):
        ttft, itl = 1000 * group["ttft_s_mean"].mean(), 1000 * group["itl_s_p99"].mean()
        unstable = "   unstable" if group["queue_grows"].astype(bool).any() else ""
        rows.append(f"{rate:5}  {budget:6,}  {ttft:7,.0f} ms  {itl:7.1f} ms{unstable}")
    return rows
