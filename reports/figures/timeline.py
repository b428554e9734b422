"""The slot timeline: a row per slot, a bar per stay, so that what was bought and not used can be seen.

Knows nothing of schedulers; it draws the stays it is given.
"""

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

from reports import ledger_rows
from reports.figures import style
from reports.units import duration, percent, printable, unit_of

MOST_SLOTS = 256
MOST_STAYS = 20_000
FEW_STAYS = 400
WIDTH = 10.0
ROW = 0.2
LOWEST, TALLEST = 0.6, 4.5
ID_SIZE = 7.5

Whole = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_COLOUR = {row.key: row.colour for row in ledger_rows.ROWS}


@dataclass(frozen=True)
class Part:
    """A part of a stay: what the legend calls it and how it looks; `second` tells neighbours apart."""

    label: str
    face: str
    second: str
    edge: str = "white"
    hatch: str = ""


WORKING = Part("working", "#2f7fb8", "#0b4f82")
PREEMPTED = Part("working until preempted", _COLOUR["recomputed"], "#7fbbe3")
LOST = Part("working, then cancelled, timed out or lost", _COLOUR["wasted"], "#b76fb3")
HELD = Part("held: finished, slot not yet free", "#fdefd9", "#f8d7a4", edge="#e9a95c", hatch="////")
EMPTY = Part("empty", "#f4f4f4", "#f4f4f4", edge="#d0d0d0")
PARTS = (WORKING, PREEMPTED, LOST, HELD, EMPTY)
PART_OF_STATUS = {"preempted": PREEMPTED, "cancelled": LOST, "timed_out": LOST, "interrupted": LOST}


@dataclass(frozen=True)
class Window:
    """The time that is drawn, in nanoseconds, of a log that ends at `end`."""

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
    """One panel per name, one over the other on a shared time axis: a row per slot, a bar per stay.

    `panels` gives for each name its stays (the columns of `sim.accounting.frames.slots_frame`) and its number of
    slots. A stay is solid from admission to its last token and hatched from there to its release; one that has not
    been released lasts to the end. Where a slot has no stay its pale track shows, up to the panel's last release. Ids
    stand in the bars that have room for them. `occupancy` puts a share into the panel's title.

    At most 256 slots and 20,000 stays are drawn of a panel, the first ones; its title says what is shown, and
    the time axis is cut for all panels alike. Raises ValueError without panels, and for a stay in a slot that
    its panel does not have.
    """
    if not panels:
        raise ValueError("no panels to draw")
    for name, (frame, slots) in panels.items():
        if len(frame) and not 0 <= frame["slot"].max() < slots:
            raise ValueError(f"{name}: a stay in slot {frame['slot'].max()} of {slots} slots")
    stays = {name: _stays(frame) for name, (frame, _) in panels.items()}
    window = _window(list(stays.values()))
    length, unit = window.unit
    heights = [min(max(ROW * slots, LOWEST), TALLEST) for _, slots in panels.values()]
    figure = style.figure(WIDTH, sum(heights) + 0.42 * len(heights) + 0.75)
    grid = figure.subplots(len(panels), 1, sharex=True, squeeze=False, height_ratios=heights)
    drawn: set[Part] = set()
    crowded = False
    for axes, height, (name, (_, slots)) in zip(grid[:, 0], heights, panels.items(), strict=True):
        shown = stays[name][(stays[name]["slot"] < MOST_SLOTS) & (stays[name]["admitted_ns"] < window.stop)]
        panel = _Panel(axes, min(slots, MOST_SLOTS), 72 * height, window, len(shown) > FEW_STAYS)
        drawn |= panel.draw(shown)
        crowded |= panel.crowded
        share = None if occupancy is None else occupancy.get(name)
        style.title(axes, name, _remark(share, slots, len(shown), len(stays[name]), window))
    note = "; neighbouring stays differ in shade" if crowded else ""
    grid[-1, 0].set_xlabel(f"time, {unit}{note}", fontsize=style.NORMAL, color=style.STRONG)
    grid[-1, 0].set_xlim(0, 1.004 * (window.stop - window.start) / length or 1)
    parts = [part for part in PARTS if part in drawn]
    patches = [Patch(facecolor=part.face, edgecolor=part.edge, hatch=part.hatch) for part in parts]
    style.legend(figure, patches, [part.label for part in parts], loc="outside lower center", ncols=len(parts))
    return figure


def _stays(frame: pd.DataFrame) -> pd.DataFrame:
    """The stays in order of admission, with every time known: what has not ended lasts to the end."""
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
        shown = stays["admitted_ns"][stays["slot"] < MOST_SLOTS]
        if len(shown) > MOST_STAYS:
            stop = min(stop, int(shown.iloc[MOST_STAYS]))
    return Window(start, stop, end)


def _remark(share: float | None, slots: int, shown: int, stays: int, window: Window) -> str:
    said = [] if share is None else [f"occupancy {percent(share)}"]
    if slots > MOST_SLOTS:
        said.append(f"first {MOST_SLOTS} of {slots:,} slots")
    if window.stop < window.end:
        whole = duration((window.end - window.start) / 1e9)
        said.append(f"first {duration((window.stop - window.start) / 1e9)} of {whole}")
    if shown < stays:
        said.append(f"{shown:,} of {stays:,} stays drawn")
    return ", ".join(said)


@dataclass(frozen=True)
class _Panel:
    """One axes with its slots; `points` is its height on paper, `crowded`: no edges, no hatches, no ids."""

    axes: Axes
    slots: int
    points: float
    window: Window
    crowded: bool

    def draw(self, stays: pd.DataFrame) -> set[Part]:
        """Draw the tracks and on them the stays; return the parts that can be seen."""
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
        parts = [PART_OF_STATUS.get(status, WORKING) for status in stays["status"]]
        for part in dict.fromkeys(parts):
            mine = np.array([other is part for other in parts])
            self._bars(part, slot[mine], begin[mine], done[mine], second[mine])
            seen.add(part)
        held = free > done
        if held.any():
            self._bars(HELD, slot[held], done[held], free[held])
            seen.add(HELD)
        if not self.crowded:
            self._ids([printable(name) for name in stays["id"]], slot, begin, done, parts)
        return seen

    def _frame(self) -> None:
        style.bare(self.axes, "bottom")
        self.axes.set_ylim(self.slots - 0.4, -0.6)
        self.axes.yaxis.set_major_locator(MaxNLocator(nbins=16 if self.slots <= 16 else 8, integer=True))
        self.axes.tick_params(axis="y", length=0)
        self.axes.set_ylabel("slot", fontsize=style.NORMAL, color=style.STRONG)

    def _bars(self, part: Part, slot: Whole, begin: Whole, end: Whole, second: Bools | None = None) -> None:
        left, right = self._along(begin), self._along(end)
        half = 0.5 if self.crowded else 0.4
        top, bottom = slot - half, slot + half
        corners = np.stack(
            [np.stack([x, y], axis=1) for x, y in ((left, top), (right, top), (right, bottom), (left, bottom))],
            axis=1,
        )
        faces = np.where(second, part.second, part.face) if second is not None and self.crowded else part.face
        bars = PolyCollection(
            list(corners),
            facecolors=faces,
            edgecolors="none" if self.crowded else part.edge,
            linewidths=0 if self.crowded else 0.6,
            hatch="" if self.crowded else part.hatch,
            gid=part.label,
        )
        self.axes.add_collection(bars, autolim=False)

    def _ids(self, ids: list[str], slot: Whole, begin: Whole, done: Whole, parts: list[Part]) -> None:
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
