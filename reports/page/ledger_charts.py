"""The ledger as bars and as areas over time, in the colours of its rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from reports import ledger_rows
from reports.page import interval_means, svg
from reports.page.line_charts import percent_label
from reports.page.report import SECOND, Run
from reports.units import amount, percent, tick_label

INTERVALS = 240
LINE = 50.0
NARROWEST_WITH_NUMBER = 0.12
ACCOUNTS = {"slot_steps": "slot-steps", "slot_seconds": "slot-seconds"}


def bars(runs: Sequence[Run]) -> Markup:
    """A bar per run and account with a segment per row that is not 0; as wide as the page, its text not scaled."""
    height = LINE * len(runs) * len(ACCOUNTS)
    parts = []
    at = 0.0
    for run in runs:
        for key, unit in ACCOUNTS.items():
            account = run.summary[key]
            parts.append(svg.text(0, at + 14, f"{run.name}: {amount(account['bought'])} {unit}", class_="t strong"))
            begin = 0.0
            for row, taken in ledger_rows.of(account):
                share = taken / account["bought"] if account["bought"] else 0.0
                if share > 0:
                    name = f"{row.key} {percent(share)}: {row.meaning}"
                    place = {"x": f"{100 * begin:.4f}%", "width": f"{100 * share:.4f}%", "y": at + 20, "height": 22}
                    parts.append(svg.tag("rect", svg.tag("title", name), **place, class_=f"r-{row.key}"))
                if share >= NARROWEST_WITH_NUMBER:
                    middle = f"{100 * (begin + share / 2):.2f}%"
                    words = {"x": middle, "y": at + 35, "text_anchor": "middle", "class_": f"t on-{row.key}"}
                    parts.append(svg.tag("text", percent(share), **words))
                begin += share
            at += LINE
    name = "Where the slot-steps and the slot-seconds went"
    style = f"height:{height:g}px"
    return svg.tag(
        "svg", svg.tag("title", name), *parts, role="img", class_="figure", style=style, xmlns=svg.NAMESPACE
    )


def over_time(run: Run) -> Markup:
    """The shares of the ledger's rows as stacked areas over time; rows that are 0 throughout are left out."""
    box = svg.Box(width=1000.0, height=230.0)
    over = interval_means.edges(run, INTERVALS)
    span = max(run.end - run.begin, 1) / SECOND
    x, y = box.x(0.0, span), box.y(0.0, 1.0)
    left, right = x((over[:-1] - run.begin) / SECOND), x((over[1:] - run.begin) / SECOND)
    across = np.stack([left, right], axis=1).ravel()
    bottom = np.zeros(len(left))
    areas = []
    for key, share in interval_means.ledger(run, over).items():
        if share.max(initial=0.0) > 1e-9:
            top = bottom + share
            path = svg.area_path(across, np.repeat(y(top), 2), np.repeat(y(bottom), 2))
            areas.append(svg.tag("path", svg.tag("title", key), d=path, class_=f"r-{key}"))
            bottom = top
    axes = box.axes(x, y, tick_label, percent_label, "time since the first request", most=(9, 5))
    return box.figure(f"{run.name}: what the slots did over time", axes, *areas, class_="wide")
