"""CSV files as rows whose cells are all text, read in pieces of whole rows."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv as arrow_csv

from traces.errors import BadInput, shown
from traces.reading import source
from traces.reading.columns.rows import Rows

MOST_COLUMNS, LONGEST_HEADER = 1000, source.MEBI


class CsvRows(Rows):
    """Rows of a CSV file, every cell text."""

    def __init__(self, path: Path, table: Any, first: int, header: int) -> None:
        super().__init__(path, table.schema.names, first, header)
        self.table = table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def texts(self, name: str) -> Any:
        return self.table[name]


def csv_header(path: Path, needed: Sequence[str] = ()) -> tuple[str, ...]:
    """The column names of a CSV file. Raises BadInput for a file without a header or with over MOST_COLUMNS."""
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

    `header` names the columns of a file without a header line. Raises BadInput if one of `needed` is missing, a name
    is repeated, a row has another number of cells, or there is no row at all.
    """
    names = tuple(header) or csv_header(path, needed)
    headers = 0 if header else 1
    for missing in (name for name in needed if name not in names):
        raise BadInput(f"{path}, row 1: column {missing} is missing; found {shown(','.join(names))}")
    if not any(names):
        raise BadInput(f"{path}, row 1: no column names; expected a header")
    if len(set(names)) < len(names):
        raise BadInput(f"{path}, row 1: a column is repeated in {shown(','.join(names))}")
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
        source.check_text(path, block, row)
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
