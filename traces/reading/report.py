"""The report of reading a file: rows read and kept, and rows changed and dropped, by reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

NO_ARRIVALS = "no arrival times: lengths only, for arrivals that are drawn or clients that use none"


@dataclass
class Report:
    """The report of reading one file.

    rows     requests in the file
    kept     rows of the workload
    changed  number of rows by reason
    dropped  number of rows that did not become rows of the workload, by reason; they may still be measurements
    notes    remarks on the whole file: its clocks, coarse ticks, ties, rows out of order
    warnings implausible data
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
        """Count `rows` changed rows; nothing is recorded for 0."""
        if rows:
            self.changed[reason] += rows

    def drop(self, reason: str, rows: int = 1) -> None:
        """Count `rows` dropped rows; nothing is recorded for 0."""
        if rows:
            self.dropped[reason] += rows

    def note(self, text: str) -> None:
        """Add a note unless it is there already."""
        if text not in self.notes:
            self.notes.append(text)

    def warn(self, text: str) -> None:
        """Add a warning unless it is there already."""
        if text not in self.warnings:
            self.warnings.append(text)

    def add(self, other: Report) -> None:
        """Add the report of the next part of the same file."""
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
        """The report as lines of text: rows read and kept, then reasons, notes and warnings."""
        return [
            f"{self.file}: {self.format}, {self.rows:,} rows read, {self.kept:,} in the workload",
            *_reasons("changed", self.changed),
            *_reasons("dropped", self.dropped),
            *(f"note: {note}" for note in self.notes),
            *(f"warning: {warning}" for warning in self.warnings),
        ]


def _reasons(what: str, reasons: Counter[str]) -> Iterable[str]:
    return (f"{what} {rows:,}: {reason}" for reason, rows in reasons.items())
