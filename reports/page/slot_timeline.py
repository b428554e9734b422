"""The slot timeline of a page: a row per slot, a bar per stay. The page's script zooms it along the time axis.

Bars are in an inner SVG whose view box is UNITS wide, so that zooming changes one attribute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from markupsafe import Markup

from reports.figures import stay_parts
from reports.figures.stay_parts import HELD, PARTS, part_of
from reports.page import svg
from reports.page.report import SECOND, Run
from reports.units import duration, printable, tick_label

MOST_STAYS = 60_000
"""Bars of all runs together; each takes about 32 bytes of the page."""
FEW_RUNS, BARS_PER_RUN = 8, 4_000
"""For each run beyond FEW_RUNS, MOST_STAYS is lowered by BARS_PER_RUN, because its curves take space too."""
MOST_NAMED = 1_500
"""The largest number of bars, of all runs together, for which each bar has a tooltip."""
UNITS = 1_000_000


@dataclass(frozen=True)
class Timeline:
    """The timeline of a run: its remark, its SVG, the keys of the parts that occur, and the time it covers (s)."""

    run: str
    remark: str
    figure: Markup
    parts: Sequence[str]
    span_s: float


def timelines(runs: Sequence[Run]) -> list[Timeline]:
    """A timeline per run on one time axis: the first slots in use, and the time in which at most MOST_STAYS begin."""
    end = max(run.end - run.begin for run in runs)
    allowed = max(0, MOST_STAYS - BARS_PER_RUN * max(0, len(runs) - FEW_RUNS)) // len(runs)
    stop = max(end, 1)
    for run in runs:
        shown = np.sort(_drawn(run)["admitted_ns"].to_numpy(np.int64)) - run.begin
        if len(shown) > allowed:
            stop = min(stop, max(int(shown[allowed]), 1))
    named = sum(len(run.stays) for run in runs) <= MOST_NAMED
    return [_timeline(run, stop, named) for run in runs]


def _drawn(run: Run) -> pd.DataFrame:
    return run.stays[run.stays["slot"] < stay_parts.MOST_SLOTS]


def _timeline(run: Run, stop: int, named: bool) -> Timeline:
    stays = _drawn(run)
    stays = stays[stays["admitted_ns"] - run.begin < stop]
    slots = stay_parts.rows(run.slots, run.stays)
    span = run.end - run.begin
    remark = stay_parts.remark(run.summary["occupancy"], run.slots, slots, stop, span, len(stays), len(run.stays))
    bars, seen = _bars(run, stays, stop, named)
    row = 18.0 if slots <= 16 else max(1.4, 300.0 / slots)
    box = svg.Box(width=1000.0, height=row * slots + 45.0, left=34.0, top=7.0)
    wide, high = box.width - box.left - box.right, row * slots
    x = box.x(0.0, stop / SECOND)
    ticks = []
    for value in x.ticks(9):
        at = float(x(value))
        ticks.append(svg.tag("line", x1=at, x2=at, y1=box.top + high, y2=box.top + high + 4, class_="axis"))
        ticks.append(svg.text(at, box.top + high + 16, tick_label(value), "middle"))
    numbers = [
        svg.text(box.left - 6, box.top + row * (slot + 0.5) + 4, f"{slot:.0f}", "end")
        for slot in svg.round_values(0, slots - 1, min(16 if slots <= 16 else 8, max(slots - 1, 1)))
    ]
    inner = svg.tag(
        "svg",
        svg.tag("rect", x=0, y=0, width=UNITS, height=slots, class_="empty"),
        *bars,
        x=box.left,
        y=box.top,
        width=wide,
        height=high,
        viewBox=f"0 0 {UNITS} {slots}",
        preserveAspectRatio="none",
        class_="bars",
    )
    axis = svg.tag("g", *ticks, class_="times", data_left=box.left, data_width=wide, data_top=box.top + high)
    below = svg.text(box.left + wide / 2, box.height - 4, "time since the first request", "middle")
    figure = box.figure(f"{run.name}: slot timeline", inner, axis, *numbers, below, class_="wide timeline")
    return Timeline(run.name, remark, figure, seen, stop / SECOND)


def _bars(run: Run, stays: pd.DataFrame, stop: int, named: bool) -> tuple[list[Markup], list[str]]:
    """The bars, and the keys of the parts that occur. A path per bar, with a tooltip, if `named`; else per shade."""

    def along(column: pd.Series[int]) -> svg.Floats:
        inside = (column.fillna(run.end).astype("int64") - run.begin).clip(upper=stop)
        return np.asarray(inside.to_numpy(np.float64) / stop * UNITS)

    begin, done = along(stays["admitted_ns"]), along(stays["completed_ns"].fillna(stays["released_ns"]))
    free = along(stays["released_ns"])
    slot = stays["slot"].to_numpy()
    shade = (stays.sort_values("admitted_ns").groupby("slot").cumcount() % 2).reindex(stays.index).to_numpy()
    part = np.array([part_of(status).key for status in stays["status"]], dtype=object)
    drawn: list[Markup] = []
    seen: list[str] = []
    for key in (each.key for each in PARTS):
        left, right = (done, free) if key == HELD.key else (begin, done)
        chosen = right > left if key == HELD.key else part == key
        for odd in (0, 1):
            here = np.flatnonzero(chosen & (shade == odd))
            if not len(here):
                continue
            seen += [] if key in seen else [key]
            paths = [
                f"M{left[i]:.0f} {slot[i] + 0.08:g}h{max(right[i] - left[i], 1):.0f}v.84h-"
                f"{max(right[i] - left[i], 1):.0f}z"
                for i in here
            ]
            kind = f"p-{key}{' odd' if odd else ''}"
            if named:
                titles = [_title(stays.iloc[i], run) for i in here]
                drawn += [
                    svg.tag("path", svg.tag("title", title), d=path, class_=kind)
                    for path, title in zip(paths, titles, strict=True)
                ]
            else:
                drawn.append(svg.tag("path", d="".join(paths), class_=kind))
    return drawn, seen


def _title(stay: pd.Series[str], run: Run) -> str:
    since = duration((int(stay["admitted_ns"]) - run.begin) / SECOND)
    return printable(f"{stay['id']} of {stay['tenant']}: {stay['status']}, in slot {stay['slot']} from {since}")
