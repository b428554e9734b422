"""The ledger as stacked bars: the share of each row in the slots bought, a bar per run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import PercentFormatter

from reports import ledger_rows
from reports.figures import style
from reports.ledger_rows import LedgerRow
from reports.units import amount, percent, printable

ACCOUNTS = {
    "slot_steps": ("Slot-steps", "the unit of scheduling: a slot for a step", "slot-steps"),
    "slot_seconds": ("Slot-seconds", "what the invoice says: a slot for a second", "slot-s"),
}
NARROWEST_WITH_NUMBER = 0.05


def ledger(summaries: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Two panels of stacked bars, a bar per run: the shares of the rows in `slot_steps` and in `slot_seconds`.

    `summaries` maps the name of a run to its summary. Segments of 5% and more are labelled with their share, bars
    with the amount bought; rows that are 0 in every run are not in the legend. Raises ValueError without runs, and if
    the rows of a run do not add up to what was bought.
    """
    if not summaries:
        raise ValueError("no ledgers to draw")
    figure = style.figure(10.0, 2.3 + 0.7 * len(summaries))
    used: set[str] = set()
    for axes, (account, (name, meaning, unit)) in zip(figure.subplots(2, 1), ACCOUNTS.items(), strict=True):
        style.title(axes, name, meaning)
        used |= _panel(axes, {run: summary[account] for run, summary in summaries.items()}, unit)
    keys = [row for row in ledger_rows.ROWS if row.key in used]
    patches = [Patch(facecolor=row.colour, edgecolor=style.EDGE, linewidth=0.5) for row in keys]
    labels = [row.key for row in keys]
    style.legend(figure, patches, labels, loc="outside lower center", ncols=min(len(keys), 8) or 1)
    return figure


def _panel(axes: Axes, accounts: Mapping[str, Mapping[str, float]], unit: str) -> set[str]:
    """Draw a bar per run; return the keys of the rows that are not 0."""
    style.bare(axes, "bottom")
    axes.set_xlim(0, 1)
    axes.set_ylim(len(accounts) - 0.45, -0.55)
    axes.xaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_yticks(range(len(accounts)), [printable(run) for run in accounts], parse_math=False)
    axes.tick_params(axis="y", length=0, labelsize=style.NORMAL)
    used = set()
    for place, account in enumerate(accounts.values()):
        bought = account["bought"]
        axes.text(1.01, place, f"{amount(bought)}\n{unit}", fontsize=style.SMALL, color=style.FAINT, va="center")
        left = 0.0
        for row, taken in ledger_rows.of(account):
            if taken:
                used.add(row.key)
                _segment(axes, row, place, left, taken / bought)
                left += taken / bought
    return used


def _segment(axes: Axes, row: LedgerRow, place: int, left: float, share: float) -> None:
    axes.barh(
        place,
        share,
        left=left,
        height=0.62,
        color=row.colour,
        edgecolor="white" if row.key != "idle" else style.EDGE,
        linewidth=0.5,
        gid=row.key,
    )
    if share >= NARROWEST_WITH_NUMBER:
        axes.text(
            left + share / 2,
            place,
            percent(share),
            ha="center",
            va="center",
            fontsize=style.SMALL,
            color=style.readable_on(row.colour),
        )
