"""TTFT by policy and tenant when one of two tenants floods the engine."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from reports.figures import style
from reports.statistics.intervals import Estimate, mean
from reports.studies import panel

if TYPE_CHECKING:
    import pandas as pd

STATISTICS = {"mean": "mean TTFT", "p99": "p99 TTFT"}


def waits(frame: pd.DataFrame) -> dict[tuple[str, str, str], Estimate]:
    """The TTFT (s) by policy, tenant and statistic: the mean over the seeds, with its interval."""
    found = {}
    for policy, group in frame.groupby("policy", sort=False):
        summaries = [json.loads(text)["tenants"] for text in group["summary"]]
        for tenant in sorted(summaries[0]):
            for statistic in STATISTICS:
                values = [summary[tenant]["ttft_s"][statistic] for summary in summaries]
                found[str(policy), tenant, statistic] = mean(values)
    return found


def draw(frame: pd.DataFrame) -> Figure:
    """A panel for the mean and one for the p99 of TTFT: bars by policy and tenant."""
    figure = style.figure(8, 3.4)
    found = waits(frame)
    policies, tenants = (list(dict.fromkeys(key[part] for key in found)) for part in (0, 1))
    for axes, (statistic, title) in zip(figure.subplots(1, 2), STATISTICS.items(), strict=True):
        panel.label(axes, title, "", "", "seconds")
        bars = []
        for place, tenant in enumerate(tenants):
            each = [found[policy, tenant, statistic] for policy in policies]
            x = np.arange(len(policies)) + 0.38 * (place - 0.5)
            reach = [min(one.high - one.value, one.value) for one in each]
            bars.append(
                axes.bar(
                    x,
                    [one.value for one in each],
                    0.36,
                    yerr=reach,
                    color=style.COLOURS[place],
                    error_kw={"linewidth": 0.8},
                )
            )
        axes.set_xticks(range(len(policies)), policies)
    style.legend(figure, [bar[0] for bar in bars], tenants, loc="outside lower center", ncols=2)
    return figure


def lines(frame: pd.DataFrame) -> list[str]:
    """Mean and p99 TTFT of each tenant, a line per policy."""
    found = waits(frame)
    rows = []
    for policy in dict.fromkeys(key[0] for key in found):
        parts = []
        for tenant in dict.fromkeys(key[1] for key in found):
            middle, tail = (found[policy, tenant, statistic].value for statistic in STATISTICS)
            parts.append(f"{tenant} mean {middle:.2f} s, p99 {tail:.2f} s")
        rows.append(f"{policy:5} {'; '.join(parts)}")
    return rows
