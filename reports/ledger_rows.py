"""The rows of the ledger as every report shows them: order, colours, glyphs, meaning and advice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class LedgerRow:
    """One reason for a slot-step.

    `colour` is for a light background, `dark` for a dark one (both `#rrggbb`); `glyph` and `ascii` distinguish the
    rows without colour. `advice` says what would reduce the row; it is empty if there is nothing to reduce.
    """

    key: str
    colour: str
    dark: str
    glyph: str
    ascii: str
    meaning: str
    advice: str = ""


# Useful rows first, then occupied slots without useful work, then empty slots. Computing is blue, wasted work purple,
# waiting in a slot orange, empty grey.
ROWS = (
    LedgerRow("decode", "#0b4f82", "#4a9bd9", "█", "#", "one new token"),
    LedgerRow("prefill", "#4f9fd4", "#86c1ee", "▓", "=", "prompt tokens", "prompts that repeat could be cached"),
    LedgerRow(
        "recomputed",
        "#a9d3ee",
        "#34597a",
        "▒",
        "r",
        "what a preemption had thrown away",
        "more pages, fewer slots, or admission: reserve",
    ),
    LedgerRow(
        "wasted",
        "#8e3b8a",
        "#b565b0",
        "x",
        "x",
        "work for requests cancelled, timed out or lost",
        "shed load earlier",
    ),
    LedgerRow(
        "held",
        "#e08a1e",
        "#e9a24a",
        "░",
        "h",
        "finished, but still in the batch",
        "continuous batching, evict: before",
    ),
    LedgerRow(
        "no_budget",
        "#f2d16b",
        "#d8b851",
        "b",
        "b",
        "the step's token budget was spent",
        "raise token_budget, if the longer step is worth it",
    ),
    LedgerRow(
        "no_memory",
        "#5c5c5c",
        "#a3a3a3",
        "m",
        "m",
        "empty: no pages for the next in line",
        "more or smaller pages of KV; under reserve, tighter max_output",
    ),
    LedgerRow(
        "blocked",
        "#858585",
        "#808080",
        "k",
        "k",
        "empty: the head could not go, a later one could",
        "an order that lets small requests pass",
    ),
    LedgerRow("limited", "#adadad", "#626262", "l", "l", "empty: the policy's own rule", "loosen the rule"),
    LedgerRow(
        "no_demand",
        "#d6d6d6",
        "#454a50",
        "·",
        ".",
        "empty: nobody waited",
        "an empty slot takes no time: fewer slots save nothing; the headroom says whether fewer GPUs would do",
    ),
    LedgerRow("idle", "#f0f0f0", "#2a2e33", " ", " ", "no step ran"),
    LedgerRow("down", "#c0392b", "#d9705f", "!", "!", "the replica had failed"),
)
USEFUL = ("decode", "prefill")


def of(account: Mapping[str, float]) -> list[tuple[LedgerRow, float]]:
    """The rows of one account (`slot_steps` or `slot_seconds` of a summary) with their amounts, in order of ROWS.

    Raises ValueError for a row that is not in ROWS, and if the rows do not add up to `bought` within a millionth of
    it (slot-seconds are floats).
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
    """The sum of the useful rows of an account, in its unit."""
    return sum(account[key] for key in USEFUL)


PRESENT = {
    "held": ("batching", "continuous"),
    "recomputed": ("admission", "reserve"),
    "prefill": ("prefix_cache", True),
}
"""The engine setting with which the advice on a row is followed already: key and value."""


def advice(row: LedgerRow, summary: Mapping[str, Any]) -> str:
    """What would reduce a row of a run; empty if there is nothing, or if the engine is set so already."""
    key, value = PRESENT.get(row.key, ("", None))
    engine = summary.get("engine") or {}
    if key and engine.get(key) == value:
        return "" if row.key != "held" or engine.get("evict") == "before" else "evict: before"
    return row.advice
