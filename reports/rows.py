"""How each row of the ledger looks, the same in every report: its place, colour, glyph and meaning.

Knows nothing of how the rows are counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One reason for a slot-step. `glyph` and `ascii` tell the rows apart where there is no colour."""

    key: str
    colour: str
    glyph: str
    ascii: str
    meaning: str


# Useful first, then occupied in vain, then empty. Work is blue, lost work purple, holding warm, empty grey.
ROWS = (
    Row("decode", "#0b4f82", "█", "#", "one new token"),
    Row("prefill", "#4f9fd4", "▓", "=", "prompt tokens"),
    Row("recomputed", "#a9d3ee", "▒", "r", "what a preemption had thrown away"),
    Row("wasted", "#8e3b8a", "x", "x", "work for requests cancelled or timed out"),
    Row("held", "#e08a1e", "░", "h", "finished, but still in the batch"),
    Row("no_budget", "#f2d16b", "b", "b", "the step's token budget was spent"),
    Row("no_memory", "#5c5c5c", "m", "m", "empty: no pages for the next in line"),
    Row("blocked", "#858585", "k", "k", "empty: the head could not go, a later one could"),
    Row("limited", "#adadad", "l", "l", "empty: the policy's own rule"),
    Row("no_demand", "#d6d6d6", "·", ".", "empty: nobody waited"),
    Row("idle", "#f0f0f0", " ", " ", "no step ran"),
)
USEFUL = ("decode", "prefill")


def of(account: Mapping[str, float]) -> list[tuple[Row, float]]:
    """The rows of one account (`slot_steps` or `slot_seconds` of a summary) with what each holds, in order.

    Raises ValueError for a row that nobody has given a look, and when the rows do not add up to what was
    bought (to a millionth: slot-seconds are floats).
    """
    known = [row.key for row in ROWS]
    unknown = sorted(account.keys() - {*known, "bought"})
    if unknown:
        raise ValueError(f"ledger row {unknown[0]!r} is unknown; known are {', '.join(known)}")
    found = [(row, account[row.key]) for row in ROWS if row.key in account]
    total = sum(amount for _, amount in found)
    if abs(total - account["bought"]) > 1e-6 * max(1.0, account["bought"]):
        raise ValueError(f"the ledger's rows add up to {total}, but {account['bought']} were bought")
    return found


def useful(account: Mapping[str, float]) -> float:
    """What the useful rows hold."""
    return sum(account[key] for key in USEFUL)
