"""The content of prefix caches at the end of a run, as a file from which another run starts.

The file names what has to agree for its pages to be found: page size, sharing, model and position scheme. It holds
only pages that are found by content, the least recently used first; pages of requests of unknown content are left
out because no later request could match them.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from slotstep.scenario.fields import Section
from slotstep.scenario.validation_errors import complaint
from traces.errors import BadInput

if TYPE_CHECKING:
    from slotstep.scenario.engine import Engine

NAME = "cache.json.gz"
FORMAT = "slotstep cache 1"


class Cache(Section):
    """The content of the file."""

    format: str
    page_size: int
    share: str
    model: str | None
    positions: str | None
    replicas: tuple[tuple[str, ...], ...]


def identity(engine: Engine) -> dict[str, Any]:
    """The settings that have to agree, by key."""
    return {name: getattr(engine, name) for name in ("page_size", "share", "model", "positions")}


def packed(engine: Engine, contents: Sequence[Sequence[bytes]]) -> bytes:
    """The bytes of a file with the cache content of each replica. Deterministic."""
    found = {"format": FORMAT, **identity(engine), "replicas": [[key.hex() for key in keys] for keys in contents]}
    return gzip.compress(json.dumps(found).encode(), mtime=0)


def read(path: Path, engines: Sequence[Engine]) -> list[list[bytes]]:
    """The initial cache content of each of these replicas, from the file that all of them name.

    Raises BadInput for a file that is not a cache file, and for one of other engines or of another number of
    replicas.
    """
    try:
        found = Cache.model_validate_json(gzip.decompress(path.read_bytes()))
        contents = [[bytes.fromhex(key) for key in keys] for keys in found.replicas]
    except ValidationError as error:
        raise BadInput(f"{path}: {complaint(error, Cache, {})}") from None
    except (EOFError, gzip.BadGzipFile, ValueError) as error:
        raise BadInput(f"{path}: expected a {NAME} that --out wrote: {error}") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None
    for engine in engines:
        for name, ours in {"format": FORMAT, **identity(engine)}.items():
            theirs = getattr(found, name)
            if theirs != ours:
                raise BadInput(f"{path}: its {name} is {theirs}, this engine's {ours}; nothing in it could be found")
    if len(contents) != len(engines):
        raise BadInput(f"{path}: holds the caches of {len(contents)} replicas; {len(engines)} start from it")
    return contents
