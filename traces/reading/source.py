"""Files as bounded streams of bytes: uncompressed, gzip or zstd, detected by their first bytes.

Files are read forward in bounded memory: a line, row or document above its size limit is an error, and so is a file
that decompresses to far more than its size.
"""

from __future__ import annotations

import gzip
import os
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

import pyarrow as pa

from traces.errors import BadInput

GZIP, ZSTD, PARQUET, BOM = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1", b"\xef\xbb\xbf"
MEBI = 2**20
BLOCK = 4 * MEBI
LONGEST_LINE = 32 * MEBI
LARGEST_DOCUMENT = 256 * MEBI
BOMB_FROM, BOMB_RATIO = 64 * MEBI, 200


class Source:
    """The uncompressed bytes of one file, from its start, without a byte-order mark. A context manager.

    Raises BadInput for a file that cannot be opened or is not a regular file (reading a pipe could block), and while
    reading for damaged or truncated compression and for a file that decompresses to over BOMB_RATIO times its size.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = _regular_size(path)
        self.unpacked = 0
        self.start = b""
        try:
            self.raw = cast(IO[bytes], path.open("rb"))
        except OSError as error:
            raise BadInput(f"{path}: cannot be read: {error.strerror}") from None
        self.stream = self.raw
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        if self.stream is not self.raw:
            self.stream.close()
        self.raw.close()

    def _start(self) -> None:
        magic = self.raw.read(len(ZSTD))
        self.raw.seek(0)
        if magic.startswith(GZIP):
            self.stream = cast(IO[bytes], gzip.GzipFile(fileobj=self.raw))
        elif magic == ZSTD:
            self.stream = cast(IO[bytes], pa.CompressedInputStream(pa.PythonFile(self.raw, mode="r"), "zstd"))
        self.start = self._read(len(BOM))
        if self.start == BOM:
            self.start = b""

    def read(self, size: int) -> bytes:
        """Up to `size` bytes; fewer only at the end of the file."""
        parts = [self.start[:size]]
        self.start = self.start[size:]
        missing = size - len(parts[0])
        while missing and (part := self._read(missing)):
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)

    def _read(self, size: int) -> bytes:
        try:
            data = bytes(self.stream.read(size))
        except EOFError:
            raise BadInput(f"{self.path}: the gzip data end early; the file is truncated") from None
        except (gzip.BadGzipFile, zlib.error) as error:
            raise BadInput(f"{self.path}: the gzip data are damaged: {error}") from None
        except OSError as error:
            reason = error.strerror or " ".join(str(error).split())
            raise BadInput(f"{self.path}: cannot be read: {reason}") from None
        self.unpacked += len(data)
        if self.unpacked > BOMB_FROM and self.unpacked > BOMB_RATIO * self.size:
            raise BadInput(
                f"{self.path}: {self.size} bytes unpack to over {self.unpacked}; expected at most {BOMB_RATIO} times"
            )
        return data


def _regular_size(path: Path) -> int:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if stat.S_ISDIR(status.st_mode):
        raise BadInput(f"{path}: is a directory; expected a file")
    if not stat.S_ISREG(status.st_mode):
        raise BadInput(f"{path}: is not a regular file; expected a file")
    return status.st_size


def head(path: Path, size: int) -> bytes:
    """The first `size` uncompressed bytes."""
    with Source(path) as source:
        return source.read(size)


def lines(path: Path, longest: int = LONGEST_LINE) -> Iterator[tuple[int, bytes]]:
    """(number from 1, content without line end) of every line that is not empty.

    Raises BadInput for a line of more than `longest` bytes.
    """
    with Source(path) as source:
        number, rest = 0, b""
        while block := source.read(BLOCK):
            *whole, last = block.split(b"\n")
            for line in whole:
                number += 1
                line = rest + line
                rest = b""
                _limit(path, number, line, longest)
                if line := line.strip():
                    yield number, line
            rest += last
            _limit(path, number + 1, rest, longest)
        if rest := rest.strip():
            yield number + 1, rest


def _limit(path: Path, number: int, line: bytes, longest: int) -> None:
    if len(line) > longest:
        raise BadInput(f"{path}, row {number}: over {longest // MEBI} MiB long; expected a shorter row")


def blocks(path: Path) -> Iterator[bytes]:
    """The file in pieces of whole CSV records, split after a line end outside of quotes.

    Empty lines at the end of the file are left out. Raises BadInput for a record of more than LONGEST_LINE bytes.
    """
    with Source(path) as source:
        rest, records = b"", 0
        while block := source.read(BLOCK):
            rest += block
            end = _content_end(rest)
            if end:
                records += rest.count(b"\n", 0, end)
                yield rest[:end]
                rest = rest[end:]
            _limit(path, records + 1, rest, LONGEST_LINE)
        if rest.strip(b"\r\n"):
            yield rest.rstrip(b"\r\n") + b"\n"


def _content_end(data: bytes) -> int:
    """The position after the last line end that ends a record with content; 0 if there is none."""
    end = len(data[: _last_record_end(data)].rstrip(b"\r\n"))
    return data.find(b"\n", end) + 1 if end else 0


def _last_record_end(data: bytes) -> int:
    """The position after the last line end with an even number of quotes before it; 0 if there is none."""
    end = data.rfind(b"\n") + 1
    quotes = data.count(b'"', 0, end)
    while quotes % 2 and end:
        before = data.rfind(b"\n", 0, end - 1) + 1
        quotes -= data.count(b'"', before, end)
        end = before
    return end


def document(path: Path) -> bytes:
    """The whole file. Raises BadInput if it is over LARGEST_DOCUMENT bytes."""
    with Source(path) as source:
        data = source.read(LARGEST_DOCUMENT + 1)
    if len(data) > LARGEST_DOCUMENT:
        raise BadInput(f"{path}: over {LARGEST_DOCUMENT // MEBI} MiB; expected a smaller JSON document")
    return data


def check_text(path: Path, data: bytes, row: int) -> None:
    """Raise BadInput for the first byte that is not UTF-8; the data start in row `row`."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        at = row + data.count(b"\n", 0, error.start)
        raise BadInput(f"{path}, row {at}: byte {data[error.start]:#04x} is not UTF-8 text") from None
