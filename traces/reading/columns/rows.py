"""Rows of a file as typed columns, with the same interface for CSV, JSON lines and JSON documents.

A reader requests all its columns first. Bad values are recorded, and `check` raises the first one in the file, naming
row and column. Rows are numbered as in a text editor: the header of a CSV file is row 1. Contains no trace format.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from traces.errors import BadInput, shown
from traces.limits import MAX_TOKENS
from traces.reading.columns import times

COUNT = r"^[0-9]{1,18}$"
WHOLE = r"^-?[0-9]{1,18}(\.0*)?$"
NUMBER = r"^[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][+-]?[0-9]{1,3})?$"
TIME_UNITS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
ISO_EXAMPLE = "a time such as 2023-11-16 18:15:46.6805900"
Whole = NDArray[np.int64]
Real = NDArray[np.float64]


class Rows(ABC):
    """Some successive rows of a file. `first` is the number of the first one among the requests, from 1."""

    def __init__(self, path: Path, names: Sequence[str], first: int, header: int) -> None:
        self.path, self.names, self.first, self.header = path, names, first, header
        self.faults: list[tuple[int, int, str, object, str]] = []

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def texts(self, name: str) -> Any:
        """A column as a pyarrow array of text, "" where it is empty, null or missing."""

    def value(self, name: str, row: int) -> object:
        """One cell, for a message."""
        return self.texts(name)[row].as_py()

    def ordinals(self) -> Whole:
        """The number of each row among the file's requests, from 1."""
        return np.arange(self.first, self.first + len(self), dtype=np.int64)

    def record_fault(self, bad: NDArray[np.bool_], name: str, wanted: str) -> None:
        """Record the first bad row of column `name`; `wanted` says what was expected."""
        if bad.any():
            row = int(np.argmax(bad))
            self.faults.append((row, len(self.faults), name, self.value(name, row), wanted))

    def check(self) -> None:
        """Raise BadInput for the first bad row, and in it for the column requested first."""
        if self.faults:
            row, _, name, found, wanted = min(self.faults, key=lambda fault: fault[:2])
            raise BadInput(f"{self.place(row)}: {name} is {shown(found)}; expected {wanted}")

    def place(self, row: int) -> str:
        """The file and row number of the `row`-th of these rows."""
        return f"{self.path}, row {self.first + row + self.header}"

    def empty(self, name: str) -> NDArray[np.bool_]:
        """Where the column is empty, null or missing."""
        return np.asarray(pc.equal(self.texts(name), ""), bool)

    def whole(
        self, name: str, least: int = 0, most: int = MAX_TOKENS, empty: int | None = None, what: str = "tokens"
    ) -> Whole:
        """Whole numbers from `least` to `most` (`76.0` is one), int64; `empty` for an empty cell, if allowed."""
        texts = self.texts(name)
        good = pc.match_substring_regex(texts, COUNT)
        if not pc.all(good).as_py():
            good = pc.match_substring_regex(texts, WHOLE)
            texts = pc.replace_substring_regex(texts, r"\.0*$", "")
        fine = np.asarray(good, bool)
        values = pc.cast(pc.if_else(good, texts, "0"), pa.int64()).to_numpy(zero_copy_only=False)
        bad = ~fine | (values < least) | (values > most)
        if empty is not None:
            absent = self.empty(name)
            values = np.where(absent, empty, values)
            bad &= ~absent
        self.record_fault(bad, name, f"a whole number of {what} from {least} to {most}")
        return np.asarray(values, np.int64)

    def number(self, name: str, least: float = 0.0, empty: bool = False) -> Real:
        """Finite numbers of at least `least`, float64; NaN for an empty cell, if `empty` cells are allowed."""
        texts = self.texts(name)
        good = pc.match_substring_regex(texts, NUMBER)
        fine = np.asarray(good, bool)
        values = pc.cast(pc.if_else(good, texts, "0"), pa.float64()).to_numpy(zero_copy_only=False)
        bad = ~fine | ~np.isfinite(values) | (values < least)
        if empty:
            bad &= ~self.empty(name)
        self.record_fault(bad, name, f"a number of at least {least:g}" + (" or nothing" if empty else ""))
        return np.asarray(np.where(fine, values, np.nan), np.float64)

    def time(
        self, name: str, unit: str, empty: bool = False, signed: bool = False
    ) -> tuple[Whole, NDArray[np.bool_]]:
        """Times in ns of a column in `unit` ("s", "ms", "us", "ns" or "iso"), and which cells are empty.

        With `signed`, times in a unit may be negative.
        """
        texts = self.texts(name)
        before = np.asarray(pc.starts_with(texts, "-"), bool) & signed
        if before.any():
            texts = pc.replace_substring_regex(texts, "^-", "")
        values, bad = times.iso(texts) if unit == "iso" else times.decimal(texts, unit)
        values = np.where(before, -values, values)
        absent = self.empty(name) if empty else np.zeros(len(self), bool)
        wanted = ISO_EXAMPLE if unit == "iso" else f"{TIME_UNITS[unit]}, from {'-2^62' if signed else 0} to 2^62 ns"
        self.record_fault(bad & ~absent, name, wanted)
        return values, absent
