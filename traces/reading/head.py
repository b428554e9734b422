"""The beginning of a file, from which its format is detected."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path

from traces.reading import source

SIZE = 256 * 1024
KEY = re.compile(r'"([^"\\]{1,60})"\s*:')


@dataclass(frozen=True)
class Head:
    """The first 256 KiB of a file.

    opening        the first non-space character, "" for an empty file
    columns        the cells of the first line, as if it were a CSV header
    keys           the keys of JSON objects, at any depth
    text           all of it, decoded
    parquet        it is a parquet file
    metadata_keys  the keys of the parquet schema's metadata
    """

    opening: str
    columns: tuple[str, ...]
    keys: frozenset[str]
    text: str
    parquet: bool = False
    metadata_keys: frozenset[str] = frozenset()

    def has_columns(self, *names: str) -> bool:
        """Whether the file starts like a CSV file with all of these columns."""
        return set(names) <= set(self.columns)

    def has_keys(self, *names: str) -> bool:
        """Whether the file starts like JSON with all of these keys, at any depth."""
        return self.opening in ("{", "[") and set(names) <= self.keys


def head(path: Path) -> Head:
    """Read the beginning of a file. Raises BadInput if it cannot be opened."""
    data = source.head(path, SIZE)
    text = data.decode("utf-8", "replace")
    opening = text.lstrip()[:1]
    line = text.lstrip("\r\n").partition("\n")[0].rstrip("\r")
    columns: tuple[str, ...] = ()
    if opening not in ("{", "[", ""):
        try:
            columns = tuple(next(csv.reader([line]), []))
        except csv.Error:
            columns = ()
    keys = frozenset(KEY.findall(text)) if opening in ("{", "[") else frozenset()
    parquet = data.startswith(source.PARQUET)
    return Head(opening, columns, keys, text, parquet, _metadata_keys(path) if parquet else frozenset())


def _metadata_keys(path: Path) -> frozenset[str]:
    """The keys of a parquet schema's metadata; none if the file is damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return frozenset(key.decode("utf-8", "replace") for key in pq.read_schema(path).metadata or {})
    except (pa.ArrowException, OSError):
        return frozenset()
