"""The slot timeline of a page: a row per slot, a bar per stay; a script may zoom it along the time axis.

Bars lie in a view box of their own, as wide as the time shown in millionths. Knows nothing of schedulers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from markupsafe import Markup

from reports.page import svg
from reports.page.line_charts import time_label
from reports.page.report import SECOND, Run
from reports.units import duration, percent, printable

MOST_SLOTS = 256
MOST_STAYS = 60_000
"""Bars of all runs together, 32 bytes each."""
FEW, FEWER = 8, 4_000
"""Beyond so many runs there are so many fewer bars for each: their lines need room too."""
MOST_NAMED = 1_500
"""Bars that carry their request's name, of all runs together."""
PARTS = {
    "working": "working",
    "preempted": "working until preempted",
    "lost": "working, then cancelled, timed out or lost",
    "held": "held: finished, slot not yet free",
}
PART_OF_STATUS = {"preempted": "preempted", "cancelled": "lost", "timed_out": "lost", "interrupted": "lost"}
UNITS = 1_000_000


@dataclass(frozen=True)
class Timeline:
    """A run's timeline: what it shows in words, the parts that can be seen in it, its first and last second."""

    run: str
    remark: str
    figure: Markup
    parts: Sequence[str]
    span_s: float


def timelines(runs: Sequence[Run]) -> list[Timeline]:
    """A timeline per run on one time axis, the first 256 slots and as much of the time as bars can be drawn of."""
    end = max(run.end - run.begin for run in runs)
    allowed = max(0, MOST_STAYS - FEWER * max(0, len(runs) - FEW)) // len(runs)
    stop = max(end, 1)
    for run in runs:
        shown = np.sort(_drawn(run)["admitted_ns"].to_numpy(np.int64)) - run.begin
        if len(shown) > allowed:
            stop = min(stop, max(int(shown[allowed]), 1))
    named = sum(len(run.stays) for run in runs) <= MOST_NAMED
    return [_timeline(run, stop, stop < end, named) for run in runs]


def _drawn(run: Run) -> pd.DataFrame:
    return run.stays[run.stays["slot"] < MOST_SLOTS]


def _timeline(run: Run, stop: int, cut: bool, named: bool) -> Timeline:
    stays = _drawn(run)
    stays = stays[stays["admitted_ns"] - run.begin < stop]
    slots = max(1, min(run.slots, MOST_SLOTS))
    said = [f"occupancy {percent(run.summary['occupancy'])}"]
    if run.slots > MOST_SLOTS:
        said.append(f"first {MOST_SLOTS} of {run.slots:,} slots")
    if cut:
        said.append(f"first {duration(stop / SECOND)} of {duration((run.end - run.begin) / SECOND)}")
    if len(stays) < len(run.stays):
        said.append(f"{len(stays):,} of {len(run.stays):,} stays drawn")
    bars, seen = _bars(run, stays, stop, named)
    row = 18.0 if slots <= 16 else max(1.4, 300.0 / slots)
    box = svg.Box(width=1000.0, height=row * slots + 45.0, left=34.0, top=7.0)
    wide, high = box.width - box.left - box.right, row * slots
    x = box.x(0.0, stop / SECOND)
    ticks = []
    for value in x.ticks(9):
        at = float(x(value))
        ticks.append(svg.tag("line", x1=at, x2=at, y1=box.top + high, y2=box.top + high + 4, class_="axis"))
        ticks.append(svg.text(at, box.top + high + 16, time_label(value), "middle"))
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
    return Timeline(run.name, ", ".join(said), figure, seen, stop / SECOND)


def _bars(run: Run, stays: pd.DataFrame, stop: int, named: bool) -> tuple[list[Markup], list[str]]:
    """The bars by part and shade: as one path each, or one by one with a name if there are few."""

    def along(column: pd.Series[int]) -> svg.Floats:
        inside = (column.fillna(run.end).astype("int64") - run.begin).clip(upper=stop)
        return np.asarray(inside.to_numpy(np.float64) / stop * UNITS)

    begin, done = along(stays["admitted_ns"]), along(stays["completed_ns"].fillna(stays["released_ns"]))
    free = along(stays["released_ns"])
    slot = stays["slot"].to_numpy()
    shade = (stays.sort_values("admitted_ns").groupby("slot").cumcount() % 2).reindex(stays.index).to_numpy()
    part = np.array([PART_OF_STATUS.get(status, "working") for status in stays["status"]], dtype=object)
    drawn: list[Markup] = []
    seen: list[str] = []
    for name in PARTS:
        left, right = (done, free) if name == "held" else (begin, done)
        chosen = right > left if name == "held" else part == name
        for odd in (0, 1):
            here = np.flatnonzero(chosen & (shade == odd))
            if not len(here):
                continue
            seen += [] if name in seen else [name]
            paths = [
                f"M{left[i]:.0f} {slot[i] + 0.08:g}h{max(right[i] - left[i], 1):.0f}v.84h-"
                f"{max(right[i] - left[i], 1):.0f}z"
                for i in here
            ]
            kind = f"p-{name}{' odd' if odd else ''}"
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
