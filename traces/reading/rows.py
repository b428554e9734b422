"""Rows of a file as typed columns: the same questions of CSV, JSON lines and JSON documents.

A reader asks for all its columns first; faults are remembered, and `check` raises the first one in the file, naming
row and column. Rows are counted as an editor shows them: the header of a CSV file is row 1. Knows no format.
"""

from __future__ import annotations

import csv
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv as arrow_csv

from traces.errors import BadInput, shown
from traces.limits import MAX_TOKENS
from traces.reading import source, times

COUNT = r"^[0-9]{1,18}$"
WHOLE = r"^-?[0-9]{1,18}(\.0*)?$"
NUMBER = r"^[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][+-]?[0-9]{1,3})?$"
TIME_UNITS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
ISO_EXAMPLE = "a time such as 2023-11-16 18:15:46.6805900"
MOST_COLUMNS, LONGEST_HEADER = 1000, source.MEBI
ROWS_AT_ONCE = 20_000
BYTES_AT_ONCE = 16 * source.MEBI
Whole = NDArray[np.int64]
Real = NDArray[np.float64]


class Rows(ABC):
    """Some successive rows of a file. `first` is the first one's number among the requests, from 1."""

    def __init__(self, path: Path, names: Sequence[str], first: int, header: int) -> None:
        self.path, self.names, self.first, self.header = path, names, first, header
        self.faults: list[tuple[int, int, str, object, str]] = []

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def texts(self, name: str) -> Any:
        """A column as a pyarrow array of text, "" where it is empty, null or missing."""

    def value(self, name: str, row: int) -> object:
        """One cell, as it stands in a message."""
        return self.texts(name)[row].as_py()

    def ordinals(self) -> Whole:
        """The number of each row among the file's requests, from 1."""
        return np.arange(self.first, self.first + len(self), dtype=np.int64)

    def blame(self, bad: NDArray[np.bool_], name: str, wanted: str) -> None:
        """Remember the first bad row of column `name`."""
        if bad.any():
            row = int(np.argmax(bad))
            self.faults.append((row, len(self.faults), name, self.value(name, row), wanted))

    def check(self) -> None:
        """Raise BadInput for the first bad row, and in it the column asked for first."""
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
        """Whole numbers from `least` to `most` (`76.0` is one); `empty` stands for an empty cell, if allowed."""
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
        self.blame(bad, name, f"a whole number of {what} from {least} to {most}")
        return np.asarray(values, np.int64)

    def number(self, name: str, least: float = 0.0, empty: bool = False) -> Real:
        """Finite numbers of at least `least`; NaN for an empty cell, if `empty` are allowed."""
        texts = self.texts(name)
        good = pc.match_substring_regex(texts, NUMBER)
        fine = np.asarray(good, bool)
        values = pc.cast(pc.if_else(good, texts, "0"), pa.float64()).to_numpy(zero_copy_only=False)
        bad = ~fine | ~np.isfinite(values) | (values < least)
        if empty:
            bad &= ~self.empty(name)
        self.blame(bad, name, f"a number of at least {least:g}" + (" or nothing" if empty else ""))
        return np.asarray(np.where(fine, values, np.nan), np.float64)

    def time(
        self, name: str, unit: str, empty: bool = False, signed: bool = False
    ) -> tuple[Whole, NDArray[np.bool_]]:
        """Times in ns of a column in `unit` ("s", "ms", "us", "ns" or "iso"), and which cells are empty.

        Those that are `signed`, and no "iso", may be before 0.
        """
        texts = self.texts(name)
        before = np.asarray(pc.starts_with(texts, "-"), bool) & signed
        if before.any():
            texts = pc.replace_substring_regex(texts, "^-", "")
        values, bad = times.iso(texts) if unit == "iso" else times.decimal(texts, unit)
        values = np.where(before, -values, values)
        absent = self.empty(name) if empty else np.zeros(len(self), bool)
        wanted = ISO_EXAMPLE if unit == "iso" else f"{TIME_UNITS[unit]}, from {'-2^62' if signed else 0} to 2^62 ns"
        self.blame(bad & ~absent, name, wanted)
        return values, absent


class CsvRows(Rows):
    """Rows of a CSV file, every cell text."""

    def __init__(self, path: Path, table: Any, first: int, header: int) -> None:
        super().__init__(path, table.schema.names, first, header)
        self.table = table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def texts(self, name: str) -> Any:
        return self.table[name]


class JsonRows(Rows):
    """JSON objects; a dot in a name goes into a nested object."""

    def __init__(
        self, path: Path, objects: list[dict[str, Any]], first: int, numbers: list[int] | None = None
    ) -> None:
        super().__init__(path, list(objects[0]) if objects else [], first, 0)
        self.objects, self.numbers = objects, numbers

    def __len__(self) -> int:
        return len(self.objects)

    def place(self, row: int) -> str:
        return f"{self.path}, row {self.numbers[row] if self.numbers else self.first + row}"

    def values(self, name: str) -> list[Any]:
        """A column as Python values, None where it is missing."""
        *outer, last = name.split(".")
        objects: list[Any] = self.objects
        for key in outer:
            objects = [found.get(key) if isinstance(found, dict) else None for found in objects]
        return [found.get(last) if isinstance(found, dict) else None for found in objects]

    def value(self, name: str, row: int) -> object:
        return self.values(name)[row]

    def texts(self, name: str) -> Any:
        return pa.array([_text(value) for value in self.values(name)], pa.string())

    def has(self, name: str) -> bool:
        """Whether any row has a value there."""
        return any(value is not None for value in self.values(name))

    def times(self, name: str, unit: str) -> list[list[int]]:
        """A column of lists of rising times in ns; empty where it is missing."""
        found, bad = [], np.zeros(len(self), bool)
        for row, value in enumerate(self.values(name)):
            cells = [times.exact(cell, unit) for cell in value] if isinstance(value, list) else []
            known = [cell for cell in cells if cell is not None]
            bad[row] = len(known) < len(cells) or known != sorted(known) or not isinstance(value, list | None)
            found.append(known)
        self.blame(bad, name, f"a list of rising {TIME_UNITS[unit]}")
        return found

    def lists(self, name: str, kind: Callable[[object], bool], wanted: str) -> list[list[Any] | None]:
        """A column of lists of values that are each of `kind`; None where it is missing."""
        values = self.values(name)
        bad = [value is not None and not (isinstance(value, list) and all(map(kind, value))) for value in values]
        self.blame(np.array(bad, bool), name, wanted)
        return values


def encodable(value: str) -> str:
    """The text with a question mark for each half of a surrogate pair that JSON let stand alone."""
    return value.encode("utf-8", "replace").decode()


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)


def csv_header(path: Path, needed: Sequence[str] = ()) -> tuple[str, ...]:
    """The column names of a CSV file. Raises BadInput for one without, or with a million."""
    start = source.head(path, LONGEST_HEADER)
    if not start.strip():
        wanted = f"the header {','.join(needed)}" if needed else "a header"
        raise BadInput(f"{path}: the file is empty; expected {wanted} and a row per request")
    line = start.partition(b"\n")[0].rstrip(b"\r")
    if len(line) == LONGEST_HEADER:
        raise BadInput(f"{path}, row 1: over {LONGEST_HEADER // source.MEBI} MiB long; expected column names")
    try:
        names = next(csv.reader([line.decode("utf-8")]), [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"{path}, row 1: not a header of column names: {error}") from None
    if len(names) > MOST_COLUMNS:
        raise BadInput(f"{path}, row 1: {len(names)} columns; expected at most {MOST_COLUMNS}")
    return tuple(names)


def read_csv(path: Path, needed: Sequence[str], header: Sequence[str] = ()) -> Iterator[CsvRows]:
    """A CSV file in pieces of whole rows, all its columns as text.

    `header` names the columns of a file without a header line. Raises BadInput when one of `needed` is missing, a
    name stands twice, a row has another number of cells, or there is no row at all.
    """
    names = tuple(header) or csv_header(path, needed)
    headers = 0 if header else 1
    for missing in (name for name in needed if name not in names):
        raise BadInput(f"{path}, row 1: column {missing} is missing; found {shown(','.join(names))}")
    if not any(names):
        raise BadInput(f"{path}, row 1: no column names; expected a header")
    if len(set(names)) < len(names):
        raise BadInput(f"{path}, row 1: a column stands twice in {shown(','.join(names))}")
    first, skip = 1, headers
    for block in source.blocks(path):
        table = _parse(path, block, names, first + headers - skip, skip)
        skip = 0
        if table.num_rows:
            yield CsvRows(path, table, first, headers)
            first += table.num_rows
    if first == 1:
        raise BadInput(f"{path}: no request after the header; expected a row per request")


def _parse(path: Path, block: bytes, names: Sequence[str], row: int, skip: int) -> Any:
    """One piece as a table of text columns; its first line is row number `row` of the file."""
    if not block.isascii():
        check_text(path, block, row)
    malformed: list[Any] = []

    def remember(found: Any) -> str:
        malformed.append(found)
        return "error"

    try:
        return arrow_csv.read_csv(
            pa.BufferReader(block),
            read_options=arrow_csv.ReadOptions(
                use_threads=False, column_names=names, skip_rows=skip, block_size=max(len(block), 1)
            ),
            parse_options=arrow_csv.ParseOptions(
                ignore_empty_lines=False, invalid_row_handler=remember, newlines_in_values=b'"' in block
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid as error:
        if malformed:
            found = malformed[0]
            at = row if found.number is None else row + found.number - 1
            raise BadInput(
                f"{path}, row {at}: {found.actual_columns} columns in {shown(found.text)}; "
                f"expected {found.expected_columns}"
            ) from None
        raise BadInput(f"{path}, row {row} or later: not a CSV file: {' '.join(str(error).split())}") from None


def check_text(path: Path, data: bytes, row: int) -> None:
    """Raise BadInput for the first byte that is no UTF-8; the data start in row `row`."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        at = row + data.count(b"\n", 0, error.start)
        raise BadInput(f"{path}, row {at}: byte {data[error.start]:#04x} is not UTF-8 text") from None


def read_jsonl(path: Path, longest: int = source.LONGEST_LINE) -> Iterator[JsonRows]:
    """A file of one JSON object per line, in pieces. Raises BadInput for a line that is none, or if there is none."""
    objects: list[dict[str, Any]] = []
    numbers: list[int] = []
    first, held = 1, 0
    for number, line in source.lines(path, longest):
        objects.append(json_object(path, line, number))
        numbers.append(number)
        held += len(line)
        if len(objects) == ROWS_AT_ONCE or held > BYTES_AT_ONCE:
            yield JsonRows(path, objects, first, numbers)
            first += len(objects)
            objects, numbers, held = [], [], 0
    if objects:
        yield JsonRows(path, objects, first, numbers)
    elif first == 1:
        raise BadInput(f"{path}: the file is empty; expected a JSON object per line")


def json_rows(path: Path, value: object, first: int = 1) -> JsonRows:
    """A JSON array of objects as rows, counted from `first`. Raises BadInput if it is none, or empty."""
    if not isinstance(value, list) or not value:
        raise BadInput(f"{path}: found {shown(value)}; expected a list of JSON objects")
    for number, item in enumerate(value, start=first):
        if not isinstance(item, dict):
            raise BadInput(f"{path}, row {number}: found {shown(item)}; expected a JSON object")
    return JsonRows(path, value, first)


def json_documents(path: Path) -> Iterator[dict[str, Any]]:
    """JSON objects one after the other in a file, on one line each or spread over many.

    NaN and Infinity, which clients write among their aggregates, are floats: no column of rows takes them. Raises
    BadInput for anything else, a file that is too large, and an empty one.
    """
    data = source.document(path)
    check_text(path, data, 1)
    text, decoder = data.decode("utf-8"), json.JSONDecoder()
    place, found = 0, False
    while place < len(text):
        if text[place].isspace():
            place += 1
            continue
        row = text.count("\n", 0, place) + 1
        try:
            value, place = decoder.raw_decode(text, place)
        except json.JSONDecodeError as error:
            raise BadInput(f"{path}, row {error.lineno}: not JSON: {error.msg} at character {error.colno}") from None
        except RecursionError:
            raise BadInput(f"{path}, row {row}: not JSON: nested too deep") from None
        except ValueError as error:
            raise BadInput(f"{path}, row {row}: not JSON: {str(error).splitlines()[0]}") from None
        if not isinstance(value, dict):
            raise BadInput(f"{path}, row {row}: found {shown(value)}; expected a JSON object")
        found = True
        yield value
    if not found:
        raise BadInput(f"{path}: the file is empty; expected a JSON object")


def json_object(path: Path, line: bytes, number: int, finite: bool = True) -> dict[str, Any]:
    """One line as a JSON object, NaN and Infinity refused if `finite`. Raises BadInput with the row if it is none."""
    value = json_value(path, line, f", row {number}", finite)
    if not isinstance(value, dict):
        raise BadInput(f"{path}, row {number}: found {shown(value)}; expected a JSON object")
    return value


def json_value(path: Path, data: bytes, place: str = "", finite: bool = True) -> Any:
    """Any JSON value; NaN and Infinity are none if `finite`. Raises BadInput."""
    try:
        return json.loads(data, parse_constant=_no_number if finite else None)
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}{place}: byte {data[error.start]:#04x} is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise BadInput(f"{path}{place}: not JSON: {error.msg} at character {error.pos + 1}") from None
    except RecursionError:
        raise BadInput(f"{path}{place}: not JSON: nested too deep") from None
    except ValueError as error:
        raise BadInput(f"{path}{place}: not JSON: {str(error).splitlines()[0]}") from None


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number")
