"""Steps over time: a row per run, a bar per step, coloured by what it computes: prefill, decode, or both."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from reports.figures import style
from reports.units import unit_of

SHOWN = {"prefill": "#d55e00", "mixed": "#e69f00", "decode": "#56b4e9"}
WIDTH, ROW = 10.0, 0.75


def step_kinds(runs: Mapping[str, pd.DataFrame]) -> Figure:
    """One row per run, on a shared time axis.

    `runs` maps the name of a run to its steps: `start_ns`, `duration_ns`, and `kind`, a key of SHOWN.
    Raises ValueError without runs, and for a run without steps.
    """
    if not runs or any(steps.empty for steps in runs.values()):
        raise ValueError("nothing to draw: no steps")
    last = max(int((steps.start_ns + steps.duration_ns).max()) for steps in runs.values())
    length, unit = unit_of([last / 1e9])
    scale = length * 1e9
    figure = style.figure(WIDTH, 0.9 + ROW * len(runs))
    axes = figure.subplots()
    for row, steps in enumerate(runs.values()):
        for kind, colour in SHOWN.items():
            part = steps[steps.kind == kind]
            bars = list(zip(part.start_ns / scale, part.duration_ns / scale, strict=True))
            axes.broken_barh(bars, (row - 0.36, 0.72), facecolor=colour, edgecolor="white", linewidth=0.4)
    axes.set_yticks(range(len(runs)), list(runs), fontsize=style.NORMAL)
    axes.invert_yaxis()
    axes.set_xlim(0, last / scale)
    axes.set_xlabel(f"time ({unit})", fontsize=style.NORMAL)
    axes.tick_params(labelsize=style.SMALL)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.legend(
        handles=[Patch(color=colour, label=kind) for kind, colour in SHOWN.items()],
        loc="lower right",
        bbox_to_anchor=(1, 1),
        ncols=len(SHOWN),
        fontsize=style.SMALL,
        frameon=False,
    )
    return figure
