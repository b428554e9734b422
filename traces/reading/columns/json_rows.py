"""JSON objects as rows: one per line, in a list, or as successive documents of one file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from traces.errors import BadInput, shown
from traces.reading import source
from traces.reading.columns import times
from traces.reading.columns.rows import TIME_UNITS, Rows

ROWS_AT_ONCE = 20_000
BYTES_AT_ONCE = 16 * source.MEBI


class JsonRows(Rows):
    """JSON objects; a dot in a column's name selects a key of a nested object."""

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
        """A column of lists of ascending times in ns; empty where it is missing."""
        found, bad = [], np.zeros(len(self), bool)
        for row, value in enumerate(self.values(name)):
            cells = [times.exact(cell, unit) for cell in value] if isinstance(value, list) else []
            known = [cell for cell in cells if cell is not None]
            bad[row] = len(known) < len(cells) or known != sorted(known) or not isinstance(value, list | None)
            found.append(known)
        self.record_fault(bad, name, f"a list of ascending {TIME_UNITS[unit]}")
        return found

    def lists(self, name: str, kind: Callable[[object], bool], wanted: str) -> list[list[Any] | None]:
        """A column of lists of values that are each of `kind`; None where it is missing."""
        values = self.values(name)
        bad = [value is not None and not (isinstance(value, list) and all(map(kind, value))) for value in values]
        self.record_fault(np.array(bad, bool), name, wanted)
        return values


def encodable(value: str) -> str:
    """The text with a question mark for each unpaired surrogate, which JSON allows and UTF-8 does not."""
    return value.encode("utf-8", "replace").decode()


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)


def read_jsonl(path: Path, longest: int = source.LONGEST_LINE) -> Iterator[JsonRows]:
    """A file of one JSON object per line, in pieces. Raises BadInput for any other line, or an empty file."""
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
    """A JSON array of objects as rows, counted from `first`. Raises BadInput for another value or an empty array."""
    if not isinstance(value, list) or not value:
        raise BadInput(f"{path}: found {shown(value)}; expected a list of JSON objects")
    for number, item in enumerate(value, start=first):
        if not isinstance(item, dict):
            raise BadInput(f"{path}, row {number}: found {shown(item)}; expected a JSON object")
    return JsonRows(path, value, first)


def json_documents(path: Path) -> Iterator[dict[str, Any]]:
    """Successive JSON objects in a file, on one line each or on several.

    NaN and Infinity, which clients write among their aggregates, become floats; columns of rows reject them. Raises
    BadInput for any other content, a file that is too large, and an empty one.
    """
    data = source.document(path)
    source.check_text(path, data, 1)
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
    """One line as a JSON object, NaN and Infinity refused if `finite`. Raises BadInput with the row otherwise."""
    value = json_value(path, line, f", row {number}", finite)
    if not isinstance(value, dict):
        raise BadInput(f"{path}, row {number}: found {shown(value)}; expected a JSON object")
    return value


def json_value(path: Path, data: bytes, place: str = "", finite: bool = True) -> Any:
    """Any JSON value, NaN and Infinity refused if `finite`. Raises BadInput otherwise."""
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
