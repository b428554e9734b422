"""What a reader did with a file: rows read and kept, what it changed and dropped, by reason. Knows no format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

NO_ARRIVALS = "no arrival times: lengths only, for arrivals that are drawn or clients that use none"


@dataclass
class Report:
    """The account of one reading. `rows` counts requests as the file lists them, `kept` the workload's rows.

    `changed` and `dropped` map a reason, in words, to the number of rows; a dropped row is one that did not
    become a row of the workload, and may still be one of the measurements. `notes` are remarks on the whole
    file: which clock, coarse ticks, ties, rows out of order. `warnings` say what cannot be so.
    """

    file: str
    format: str = ""
    rows: int = 0
    kept: int = 0
    changed: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def change(self, reason: str, rows: int = 1) -> None:
        """Book `rows` changed rows; none is no line."""
        if rows:
            self.changed[reason] += rows

    def drop(self, reason: str, rows: int = 1) -> None:
        """Book `rows` dropped rows; none is no line."""
        if rows:
            self.dropped[reason] += rows

    def note(self, text: str) -> None:
        """Add a remark, once."""
        if text not in self.notes:
            self.notes.append(text)

    def warn(self, text: str) -> None:
        """Add a warning, once."""
        if text not in self.warnings:
            self.warnings.append(text)

    def add(self, other: Report) -> None:
        """Add the account of the next part of the same file."""
        self.format = other.format
        self.rows += other.rows
        self.kept += other.kept
        self.changed.update(other.changed)
        self.dropped.update(other.dropped)
        for note in other.notes:
            self.note(note)
        for warning in other.warnings:
            self.warn(warning)

    def lines(self) -> list[str]:
        """The account in lines of text: what was read and kept, then each reason, the notes, the warnings."""
        return [
            f"{self.file}: {self.format}, {self.rows:,} rows read, {self.kept:,} in the workload",
            *_reasons("changed", self.changed),
            *_reasons("dropped", self.dropped),
            *(f"note: {note}" for note in self.notes),
            *(f"warning: {warning}" for warning in self.warnings),
        ]


def _reasons(what: str, reasons: Counter[str]) -> Iterable[str]:
    return (f"{what} {rows:,}: {reason}" for reason, rows in reasons.items())
