"""Files that are either whole or absent: written under a temporary name beside the target, then renamed.

Knows nothing of what it writes.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


@contextmanager
def atomically(path: Path, through: Path | None = None) -> Iterator[Path]:
    """Yield a temporary path in the folder of `path`; what was written there becomes `path` at the end.

    With `through` it is in that folder, of the same file system, so that a process that is killed leaves
    nothing beside `path`. The temporary path keeps the suffix of `path`. When the block raises, the temporary
    file is removed and whatever `path` held before is untouched. Raises OSError, naming `path`, if its folder
    is absent or cannot be written, or if `path` is itself a folder.
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
    """Write bytes to `path` atomically and return it. Raises OSError."""
    with atomically(path) as temporary:
        temporary.write_bytes(content)
    return path


def write_text(path: Path, content: str) -> Path:
    """Write text to `path` as UTF-8, line ends unchanged, atomically, and return it. Raises OSError."""
    return write_bytes(path, content.encode())


def write_json(path: Path, content: object) -> Path:
    """Write `content` as indented JSON, atomically, and return `path`.

    Raises OSError; ValueError for a NaN or an infinity, which JSON lacks; TypeError for what it cannot hold.
    """
    return write_text(path, json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def write_parquet(path: Path, frame: pd.DataFrame) -> Path:
    """Write a frame's columns (not its index) as Parquet, atomically, and return `path`. Raises OSError."""
    with atomically(path) as temporary:
        frame.to_parquet(temporary, index=False)
    return path
