"""The Azure LLM inference traces of 2023: one CSV row per request, plain or gzipped.

Columns, in any order: TIMESTAMP (`2023-11-16 18:15:46.6805900`, up to nine fractional digits, no zone),
ContextTokens, GeneratedTokens. Whether a file is gzipped is decided by its first bytes, never by its name.

Rows are counted as an editor shows them: the header is row 1, so the first request is row 2; errors name
that row. Request ids count the requests instead: the first one in the file is "1".

Knows nothing of where the file comes from; `traces.fetch` does.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from sim.request import Request
from traces.errors import BadInput, shown
from traces.limits import MAX_TOKENS

TIMESTAMP, PROMPT, OUTPUT = COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
TIME = "a time such as 2023-11-16 18:15:46.6805900"
COUNT = f"a whole number of tokens from 1 to {MAX_TOKENS}"
TIME_PATTERN = r"^(19|20)\d{2}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}(\.\d{1,9})?$"
COUNT_PATTERN = r"^[0-9]{1,18}$"
HEADER_ROWS = 1
GZIP_MAGIC = b"\x1f\x8b"


def read(path: Path, tenant: str = "default") -> list[Request]:
    """All requests of the file, by arrival; rows of equal time keep the file's order.

    Arrivals are exact integer nanoseconds after the earliest row's. Raises BadInput, naming file, row and
    column, for anything that is not such a trace; no row is ever skipped.
    """
    table = _table(Path(path))
    _check(path, table)
    times = pc.cast(table[TIMESTAMP], pa.timestamp("ns")).cast(pa.int64()).to_numpy()
    order = np.argsort(times, kind="stable")
    numbers = (order + 1).tolist()
    arrivals = (times - times.min())[order].tolist()
    prompts = pc.cast(table[PROMPT], pa.int64()).to_numpy()[order].tolist()
    outputs = pc.cast(table[OUTPUT], pa.int64()).to_numpy()[order].tolist()
    return [
        Request(str(number), arrival, prompt, output, tenant)
        for number, arrival, prompt, output in zip(numbers, arrivals, prompts, outputs, strict=True)
    ]


def _check(path: Path, table: Any) -> None:
    """Raise BadInput for the first row, and in it the first column, that holds no time or no token count."""
    faults = {
        TIMESTAMP: _first_bad_time(table[TIMESTAMP]),
        PROMPT: _first_bad_count(table[PROMPT]),
        OUTPUT: _first_bad_count(table[OUTPUT]),
    }
    bad = [(row, COLUMNS.index(name), name) for name, row in faults.items() if row is not None]
    if bad:
        row, _, name = min(bad)
        found, wanted = shown(table[name][row].as_py()), TIME if name == TIMESTAMP else COUNT
        raise BadInput(f"{path}, row {row + 1 + HEADER_ROWS}: {name} is {found}; expected {wanted}")


def _table(path: Path) -> Any:
    """The file as a pyarrow table of text columns, every row present."""
    data = _bytes(path).removeprefix(b"\xef\xbb\xbf").rstrip(b"\r\n")
    if not data:
        raise BadInput(f"{path}: the file is empty; expected the header {','.join(COLUMNS)} and a row per request")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        row = data.count(b"\n", 0, error.start) + 1
        raise BadInput(f"{path}, row {row}: byte {data[error.start]:#04x} is not UTF-8 text") from None
    header = _header(path, data.partition(b"\n")[0].decode("utf-8"))
    malformed: list[Any] = []

    def remember(row: Any) -> str:
        malformed.append(row)
        return "error"

    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(data + b"\n"),
            read_options=arrow_csv.ReadOptions(use_threads=False),
            parse_options=arrow_csv.ParseOptions(ignore_empty_lines=False, invalid_row_handler=remember),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(header, pa.string()), strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid as error:
        if malformed:
            row = malformed[0]
            raise BadInput(
                f"{path}, row {row.number}: {row.actual_columns} columns in {shown(row.text)}; "
                f"expected {row.expected_columns}"
            ) from None
        raise BadInput(f"{path}: not a CSV file: {' '.join(str(error).split())}") from None
    if table.num_rows == 0:
        raise BadInput(f"{path}: no request after the header; expected a row per request")
    return table


def _bytes(path: Path) -> bytes:
    """The uncompressed content of a plain or gzipped file."""
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if data.startswith(GZIP_MAGIC) else data
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file") from None
    except IsADirectoryError:
        raise BadInput(f"{path}: is a directory; expected a file") from None
    except EOFError:
        raise BadInput(f"{path}: the gzip data end early; the file is truncated") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise BadInput(f"{path}: the gzip data are damaged: {error}") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None


def _header(path: Path, line: str) -> list[str]:
    """The column names of the header line, which must be exactly COLUMNS in any order."""
    names = next(csv.reader([line.rstrip("\r")]), [])
    for missing in (name for name in COLUMNS if name not in names):
        raise BadInput(f"{path}, row 1: column {missing} is missing; found {shown(','.join(names))}")
    for extra in (name for name in names if name not in COLUMNS):
        raise BadInput(f"{path}, row 1: unknown column {shown(extra)}; expected {','.join(COLUMNS)} only")
    if len(names) > len(COLUMNS):
        raise BadInput(f"{path}, row 1: a column stands twice in {shown(','.join(names))}")
    return names


def _first_bad_time(texts: Any) -> int | None:
    """The index of the first text that is not a time, or None."""
    well_formed = pc.match_substring_regex(texts, TIME_PATTERN).to_numpy()
    try:
        pc.cast(texts, pa.timestamp("ns"))
    except pa.ArrowInvalid:
        return next(row for row, fine in enumerate(well_formed) if not (fine and _is_time(texts[row])))
    return None if well_formed.all() else int(np.argmin(well_formed))


def _is_time(text: Any) -> bool:
    try:
        text.cast(pa.timestamp("ns"))
    except pa.ArrowInvalid:
        return False
    return True


def _first_bad_count(texts: Any) -> int | None:
    """The index of the first text that is not a token count, or None."""
    digits = pc.match_substring_regex(texts, COUNT_PATTERN)
    counts = pc.cast(pc.if_else(digits, texts, "0"), pa.int64()).to_numpy()
    fine = (counts >= 1) & (counts <= MAX_TOKENS)
    return None if fine.all() else int(np.argmin(fine))
