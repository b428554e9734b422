"""The slot timeline: a row per slot, a bar per stay of a request, so that empty and held slots can be seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from reports.figures import stay_parts, style
from reports.figures.stay_parts import HELD, PARTS, StayPart, part_of
from reports.units import printable, unit_of

MOST_STAYS = 20_000
FEW_STAYS = 400
WIDTH = 10.0
ROW = 0.2
LOWEST, TALLEST = 0.6, 4.5
ID_SIZE = 7.5

Whole = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

EMPTY = StayPart("empty", "empty", "#f4f4f4", "#f4f4f4", edge="#d0d0d0")


@dataclass(frozen=True)
class Window:
    """The time that is drawn, from `start` to `stop`, of runs that last until `end`; all in nanoseconds."""

    start: int
    stop: int
    end: int

    @property
    def unit(self) -> tuple[float, str]:
        """The length in nanoseconds and the name of the time axis' unit."""
        length, name = unit_of([(self.stop - self.start) / 1e9])
        return length * 1e9, name


def slot_timeline(
    panels: Mapping[str, tuple[pd.DataFrame, int]], occupancy: Mapping[str, float] | None = None
) -> Figure:
    """One panel per run, stacked on a shared time axis: a row per slot, a bar per stay.

    `panels` maps the name of a run to its stays (the columns of `sim.accounting.frames.slots_frame`) and its number
    of slots. A stay is solid from admission to its last token and hatched from there to its release; one that has not
    been released lasts to the end of the run. A slot without a stay is pale grey, up to the panel's last release.
    Bars that are long enough carry the id of their request. `occupancy` maps names to the share in the panel's title.

    At most 256 slots and 20,000 stays of a panel are drawn, the first ones; of more than 16 slots of which at most
    half are in use, only those. The title says what is left out, and the time axis is cut for all panels. Raises
    ValueError without panels, and for a stay in a slot beyond the number of slots of its panel.
    """
    if not panels:
        raise ValueError("no panels to draw")
    for name, (frame, slots) in panels.items():
        if len(frame) and not 0 <= frame["slot"].max() < slots:
            raise ValueError(f"{name}: a stay in slot {frame['slot'].max()} of {slots} slots")
    stays = {name: _stays(frame) for name, (frame, _) in panels.items()}
    window = _window(list(stays.values()))
    length, unit = window.unit
    rows = {name: stay_parts.rows(slots, stays[name]) for name, (_, slots) in panels.items()}
    heights = [min(max(ROW * each, LOWEST), TALLEST) for each in rows.values()]
    figure = style.figure(WIDTH, sum(heights) + 0.42 * len(heights) + 0.75)
    grid = figure.subplots(len(panels), 1, sharex=True, squeeze=False, height_ratios=heights)
    drawn: set[StayPart] = set()
    dense = False
    for axes, height, (name, (_, slots)) in zip(grid[:, 0], heights, panels.items(), strict=True):
        shown = stays[name][
            (stays[name]["slot"] < stay_parts.MOST_SLOTS) & (stays[name]["admitted_ns"] < window.stop)
        ]
        panel = _Panel(axes, rows[name], 72 * height, window, len(shown) > FEW_STAYS)
        drawn |= panel.draw(shown)
        dense |= panel.dense
        share = None if occupancy is None else occupancy.get(name)
        span, whole = window.stop - window.start, window.end - window.start
        remark = stay_parts.remark(share, slots, rows[name], span, whole, len(shown), len(stays[name]))
        style.title(axes, name, remark)
    note = "; neighbouring stays differ in shade" if dense else ""
    grid[-1, 0].set_xlabel(f"time, {unit}{note}", fontsize=style.NORMAL, color=style.STRONG)
    grid[-1, 0].set_xlim(0, 1.004 * (window.stop - window.start) / length or 1)
    parts = [part for part in (*PARTS, EMPTY) if part in drawn]
    patches = [Patch(facecolor=part.face, edgecolor=part.edge, hatch=part.hatch) for part in parts]
    style.legend(figure, patches, [part.label for part in parts], loc="outside lower center", ncols=len(parts))
    return figure


def _stays(frame: pd.DataFrame) -> pd.DataFrame:
    """The stays in order of admission; times that are missing, because a stay has not ended, are set to the end."""
    times = frame[["admitted_ns", "completed_ns", "released_ns"]]
    end = 0 if frame.empty else int(times.max().max())
    return frame.assign(
        admitted_ns=frame["admitted_ns"].astype("int64"),
        completed_ns=frame["completed_ns"].fillna(frame["released_ns"]).fillna(end).astype("int64"),
        released_ns=frame["released_ns"].fillna(end).astype("int64"),
    ).sort_values(["admitted_ns", "slot"], kind="stable")


def _window(panels: list[pd.DataFrame]) -> Window:
    start = min((int(stays["admitted_ns"].iloc[0]) for stays in panels if len(stays)), default=0)
    end = max((int(stays["released_ns"].max()) for stays in panels if len(stays)), default=0)
    stop = end
    for stays in panels:
        shown = stays["admitted_ns"][stays["slot"] < stay_parts.MOST_SLOTS]
        if len(shown) > MOST_STAYS:
            stop = min(stop, int(shown.iloc[MOST_STAYS]))
    return Window(start, stop, end)


@dataclass(frozen=True)
class _Panel:
    """One axes with its slots; `points` is its height in points; `dense` leaves out edges, hatches and ids."""

    axes: Axes
    slots: int
    points: float
    window: Window
    dense: bool

    def draw(self, stays: pd.DataFrame) -> set[StayPart]:
        """Draw the empty slots and the stays on them; return the parts that occur."""
        self._frame()
        slot = stays["slot"].to_numpy()
        begin, done, free = (
            stays[column].clip(upper=self.window.stop).to_numpy()
            for column in ("admitted_ns", "completed_ns", "released_ns")
        )
        start, end = self.window.start, int(free.max()) if len(free) else self.window.stop
        self._bars(EMPTY, np.arange(self.slots), np.full(self.slots, start), np.full(self.slots, end))
        seen = {EMPTY} if (free - begin).sum() < self.slots * (end - start) else set()
        second = (stays.groupby("slot").cumcount() % 2 == 1).to_numpy()
        parts = [part_of(status) for status in stays["status"]]
        for part in dict.fromkeys(parts):
            mine = np.array([other is part for other in parts])
            self._bars(part, slot[mine], begin[mine], done[mine], second[mine])
            seen.add(part)
        held = free > done
        if held.any():
            self._bars(HELD, slot[held], done[held], free[held])
            seen.add(HELD)
        if not self.dense:
            self._ids([printable(name) for name in stays["id"]], slot, begin, done, parts)
        return seen

    def _frame(self) -> None:
        style.bare(self.axes, "bottom")
        self.axes.set_ylim(self.slots - 0.4, -0.6)
        self.axes.yaxis.set_major_locator(MaxNLocator(nbins=16 if self.slots <= 16 else 8, integer=True))
        self.axes.tick_params(axis="y", length=0)
        self.axes.set_ylabel("slot", fontsize=style.NORMAL, color=style.STRONG)

    def _bars(self, part: StayPart, slot: Whole, begin: Whole, end: Whole, second: Bools | None = None) -> None:
        left, right = self._along(begin), self._along(end)
        half = 0.5 if self.dense else 0.4
        top, bottom = slot - half, slot + half
        corners = np.stack(
            [np.stack([x, y], axis=1) for x, y in ((left, top), (right, top), (right, bottom), (left, bottom))],
            axis=1,
        )
        faces = np.where(second, part.second, part.face) if second is not None and self.dense else part.face
        bars = PolyCollection(
            list(corners),
            facecolors=faces,
            edgecolors="none" if self.dense else part.edge,
            linewidths=0 if self.dense else 0.6,
            hatch="" if self.dense else part.hatch,
            gid=part.label,
        )
        self.axes.add_collection(bars, autolim=False)

    def _ids(self, ids: list[str], slot: Whole, begin: Whole, done: Whole, parts: list[StayPart]) -> None:
        if self.points / self.slots < ID_SIZE + 1.5:
            return
        a_point = (self.window.stop - self.window.start) / (72 * (WIDTH - 0.7))
        room = (done - begin) / max(a_point, 1e-9)
        needed = np.array([len(name) for name in ids]) * 0.65 * ID_SIZE + 3
        middle = (self._along(begin) + self._along(done)) / 2
        for i in np.flatnonzero(room >= needed):
            self.axes.text(
                float(middle[i]),
                int(slot[i]),
                ids[i],
                fontsize=ID_SIZE,
                color=style.readable_on(parts[i].face),
                ha="center",
                va="center_baseline",
                parse_math=False,
            )

    def _along(self, instant: Whole) -> Floats:
        return (instant - self.window.start) / self.window.unit[0]
