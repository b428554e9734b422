"""Atomic writing of files: written under a temporary name beside the target, then renamed."""

from __future__ import annotations

import gzip
import json
import os
import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

if TYPE_CHECKING:
    import pandas as pd


@contextmanager
def atomically(path: Path, through: Path | None = None) -> Iterator[Path]:
    """Yield a temporary path in the folder of `path`; the file written there replaces `path` at the end of the block.

    The temporary path keeps the suffix of `path`. `through` is another folder of the same file system for the
    temporary file, so that a killed process leaves nothing in the folder of `path`. If the block raises, the
    temporary file is removed and `path` is left as it was. Raises OSError, naming `path`, if its folder is absent or
    cannot be written, or if `path` is itself a folder.
    """
    temporary = (through or path.parent) / f".{path.stem}.{uuid.uuid4().hex}{path.suffix}"
    try:
        try:
            temporary.open("xb").close()
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from error
        yield temporary
        try:
            os.replace(temporary, path)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        with suppress(OSError):
            temporary.unlink()


def write_bytes(path: Path, content: bytes) -> Path:
    """Write bytes to `path` atomically and return `path`. Raises OSError."""
    with atomically(path) as temporary:
        temporary.write_bytes(content)
    return path


def write_text(path: Path, content: str) -> Path:
    """Write text to `path` as UTF-8 with its line ends unchanged, atomically, and return `path`. Raises OSError."""
    return write_bytes(path, content.encode())


def write_lines(path: Path, pieces: Iterable[str]) -> Path:
    """Write pieces of text to `path` as they come, with gzip if its name ends in .gz, atomically, and return `path`.

    Raises OSError.
    """
    with atomically(path) as temporary, temporary.open("wb") as raw, ExitStack() as stack:
        file: IO[bytes] = raw
        if path.suffix == ".gz":
            file = cast(IO[bytes], stack.enter_context(gzip.GzipFile("", "wb", fileobj=raw, mtime=0)))
        for piece in pieces:
            file.write(piece.encode())
    return path


def write_json(path: Path, content: object) -> Path:
    """Write `content` as indented JSON, atomically, and return `path`.

    Raises OSError; ValueError for a NaN or an infinity; TypeError for an object that JSON cannot represent.
    """
    return write_text(path, json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def write_parquet(path: Path, frame: pd.DataFrame) -> Path:
    """Write the columns of a frame, without its index, as Parquet, atomically, and return `path`. Raises OSError."""
    with atomically(path) as temporary:
        frame.to_parquet(temporary, index=False)
    return path
