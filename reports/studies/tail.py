"""Occupancy of static and continuous batching over the spread of output lengths, and workloads that lower both.

Theory: a static batch of B lasts as long as its longest output, so its occupancy is E[length] / E[longest of B].
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from scipy import stats

from reports.figures import style
from reports.ledger_rows import ROWS
from reports.statistics.intervals import Estimate, mean
from reports.studies import panel

if TYPE_CHECKING:
    import pandas as pd

SLOTS = 8
LONGEST = 1_000_000
"""Tokens up to which a distribution is summed; the remainder of a Pareto distribution is added in closed form."""


def theory(law: str, options: dict[str, Any]) -> float:
    """The occupancy of a static batch of SLOTS outputs of this distribution, in whole tokens."""
    if law == "empirical":
        values, weights = np.array(options["values"]), np.array(options["weights"], float)
        reach = np.cumsum(weights) / weights.sum()
        longest = values @ np.diff(reach**SLOTS, prepend=0)
        return float(values @ weights / weights.sum() / longest)
    lengths = np.arange(LONGEST)
    if law == "lognormal":
        sigma = np.sqrt(np.log1p(options["cv"] ** 2))
        below = stats.norm.cdf((np.log(lengths + 0.5) - np.log(options["mean"])) / sigma + sigma / 2)
        below[0] = 0
        return float((1 - below).sum() / (1 - below**SLOTS).sum())
    alpha, least = options["alpha"], options["minimum"]
    below = np.where(lengths + 0.5 < least, 0, 1 - (least / np.maximum(lengths + 0.5, least)) ** alpha)
    beyond = least**alpha * LONGEST ** (1 - alpha) / (alpha - 1)
    return float(((1 - below).sum() + beyond) / ((1 - below**SLOTS).sum() + SLOTS * beyond))


def spread(law: str, options: dict[str, Any]) -> float:
    """The coefficient of variation of a lognormal or empirical distribution; the tail index of a Pareto one."""
    if law == "empirical":
        values, weights = np.array(options["values"], float), np.array(options["weights"], float)
        centre = np.average(values, weights=weights)
        return float(np.sqrt(np.average((values - centre) ** 2, weights=weights)) / centre)
    return float(options["cv"] if law == "lognormal" else options["alpha"])


def occupancies(frame: pd.DataFrame) -> dict[tuple[str, str, float], tuple[Estimate, float]]:
    """Occupancy with its interval, and that of theory (1 if continuous), by batching, distribution and spread.

    Slot-steps that are empty because no request waits (`no_demand`) are not counted as bought.
    """
    busy = (frame["slot_steps_decode"] + frame["slot_steps_prefill"]) / (
        frame["slot_steps_bought"] - frame["slot_steps_no_demand"]
    )
    found = {}
    groups = frame.assign(busy=busy).groupby(["engine_batching", "workload_synthetic_output"])
    for key, group in groups:
        batching, text = map(str, cast(tuple[str, str], key))
        ((law, options),) = json.loads(text).items()
        expected = theory(law, options) if batching == "static" else 1.0
        found[batching, law, spread(law, options)] = (mean(group["busy"].to_numpy()), expected)
    return found


def draw(frame: pd.DataFrame, defeats: pd.DataFrame) -> Figure:
    """Occupancy over CV and over the tail index, and the ledgers of the workloads in `defeats`, in a panel each."""
    figure = style.figure(9.5, 3.6)
    by_cv, by_index, ledger = figure.subplots(1, 3, width_ratios=(1.1, 1, 1.1))
    found = occupancies(frame)
    panel.label(by_cv, "lognormal", "mean 21.5", "coefficient of variation of the output length", "occupancy, %")
    panel.label(by_index, "Pareto", "", "tail index (heavier to the right)", "")
    handles: dict[str, Any] = {}
    for axes, law in ((by_cv, "lognormal"), (by_index, "pareto")):
        for place, batching in enumerate(("static", "continuous")):
            points = [
                (at, each) for (kind, which, at), (each, _) in found.items() if (kind, which) == (batching, law)
            ]
            handles[f"{batching} batching"] = panel.line(axes, place, points, 100)
        expected = sorted(
            (at, 100 * t) for (kind, which, at), (_, t) in found.items() if (kind, which) == ("static", law)
        )
        (handles["theory: E[length] / E[longest of 8]"],) = axes.plot(
            *zip(*expected, strict=True), color=style.FAINT, linestyle="none", marker="x", markersize=6
        )
        axes.set_ylim(0, 104)
    for place, batching in enumerate(("static", "continuous")):
        ((at, each),) = [
            (at, e) for (kind, law, at), (e, _) in found.items() if (kind, law) == (batching, "empirical")
        ]
        (star,) = by_cv.plot(
            [at], [100 * each.value], color=style.COLOURS[place], marker="*", markersize=11, linestyle="none"
        )
    handles["5, 8, 6, 120, 7, 9, 6, 11"] = star
    by_index.invert_xaxis()
    style.legend(figure, list(handles.values()), list(handles), loc="outside lower left", ncols=2)
    stacked(ledger, defeats[defeats["engine_batching"] == "continuous"])
    return figure


def stacked(axes: Axes, frame: pd.DataFrame) -> None:
    """A bar per workload: the rows of the ledger as shares of the slot-steps bought."""
    panel.label(axes, "continuous, to the end", "", "", "slot-steps, %")
    handles: dict[str, Patch] = {}
    for place, (_, group) in enumerate(frame.groupby("name", sort=True)):
        bottom = 0.0
        for row in ROWS:
            share = 100 * shares(group, row.key)
            if share > 0.05:
                axes.bar(place, share, bottom=bottom, color=row.colour, edgecolor="white", linewidth=0.4, width=0.7)
                handles[row.key] = Patch(color=row.colour)
                bottom += share
    names = sorted(frame["name"].unique())
    axes.set_xticks(range(len(names)), [each.replace(" ", "\n") for each in names])
    style.legend(
        axes, list(handles.values()), list(handles), loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=3
    )


def shares(group: pd.DataFrame, row: str) -> float:
    """The mean share of a row of the ledger in the slot-steps bought; 0 for rows of slot-seconds only."""
    column = f"slot_steps_{row}"
    return float((group[column] / group["slot_steps_bought"]).mean()) if column in group else 0.0


def lines(frame: pd.DataFrame, defeats: pd.DataFrame) -> list[str]:
    """Occupancies with theory, and for each workload in `defeats` the row that continuous batching loses most to."""
    found = occupancies(frame)
    rows = ["law and spread         static  theory  continuous (while anybody waits)"]
    for _, law, at in sorted(key for key in found if key[0] == "static"):
        static, expected = found["static", law, at]
        continuous, _ = found["continuous", law, at]
        rows.append(f"{law:12} {at:7.3g}  {static.value:7.1%} {expected:7.1%} {continuous.value:9.1%}")
    for name, group in defeats[defeats["engine_batching"] == "continuous"].groupby("name"):
        lost = {row.key: shares(group, row.key) for row in ROWS if row.key not in ("decode", "prefill")}
        row = max(lost, key=lambda each: lost[each])
        rows.append(f"{name}: continuous {group['occupancy'].mean():.1%}; most is lost to {row}, {lost[row]:.1%}")
    return rows
