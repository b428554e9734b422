"""Atomic writing of files."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from traces.errors import BadInput


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file atomically, under a temporary name first. Raises BadInput if it cannot be written."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise BadInput(f"{path}: cannot be written: {error.strerror}") from None
