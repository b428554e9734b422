"""The parts of a stay in slot timelines, of figures and of pages, and the remark on what a timeline leaves out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reports import ledger_rows
from reports.units import duration, percent

if TYPE_CHECKING:
    import pandas as pd

MOST_SLOTS = 256
"""Slots that are drawn of a run: the first ones."""
FEW_SLOTS = 16
"""Up to this number all slots of a run are drawn; of more, only those in use, if they are at most half."""

_COLOUR = {row.key: row.colour for row in ledger_rows.ROWS}


@dataclass(frozen=True)
class StayPart:
    """A part of a stay: its key in style sheets, its label in legends, its colours on a light background.

    `second` is the colour of every other stay of a slot, so that neighbours can be distinguished without edges.
    """

    key: str
    label: str
    face: str
    second: str
    edge: str = "white"
    hatch: str = ""


WORKING = StayPart("working", "working", "#2f7fb8", "#0b4f82")
PREEMPTED = StayPart("preempted", "working until preempted", _COLOUR["recomputed"], "#7fbbe3")
LOST = StayPart("lost", "working, then cancelled, timed out or lost", _COLOUR["wasted"], "#b76fb3")
HELD = StayPart("held", "held: finished, slot not yet free", "#fdefd9", "#f8d7a4", edge="#e9a95c", hatch="////")
PARTS = (WORKING, PREEMPTED, LOST, HELD)
_PART_OF_STATUS = {"preempted": PREEMPTED, "cancelled": LOST, "timed_out": LOST, "interrupted": LOST}


def part_of(status: str) -> StayPart:
    """The part that a stay is from its admission to its last token, by the status with which it ended."""
    return _PART_OF_STATUS.get(status, WORKING)


def rows(slots: int, stays: pd.DataFrame) -> int:
    """The slots that are drawn of a run with these stays: the first ones, up to the last in use if few are in use."""
    used = 0 if stays.empty else int(stays["slot"].max()) + 1
    return max(1, min(used if slots > FEW_SLOTS and 2 * used <= slots else slots, MOST_SLOTS))


def remark(
    occupancy: float | None, slots: int, rows: int, shown_ns: int, span_ns: int, drawn: int, stays: int
) -> str:
    """The occupancy, if known, and what a timeline leaves out: slots, time (`shown_ns` of `span_ns`), stays."""
    parts = [] if occupancy is None else [f"occupancy {percent(occupancy)}"]
    if rows < min(slots, MOST_SLOTS):
        parts.append(f"{rows:,} of {slots:,} slots, no other was in use")
    elif slots > MOST_SLOTS:
        parts.append(f"first {MOST_SLOTS} of {slots:,} slots")
    if shown_ns < span_ns:
        parts.append(f"first {duration(shown_ns / 1e9)} of {duration(span_ns / 1e9)}")
    if drawn < stays:
        parts.append(f"{drawn:,} of {stays:,} stays drawn")
    return ", ".join(parts)
