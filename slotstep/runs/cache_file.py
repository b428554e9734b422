"""What a prefix cache held at the end of a run, in a file, and another run's start from it.

The file names everything that must agree for its pages to be of use: page size, who shares, the model and its
position scheme. Only pages found by content are in it, the least recently used first: what requests of
unknown content left would be found by nobody.
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
    """What must agree, by key."""
    return {name: getattr(engine, name) for name in ("page_size", "share", "model", "positions")}


def packed(engine: Engine, contents: Sequence[Sequence[bytes]]) -> bytes:
    """The file that holds what the cache of each replica does; the same for the same contents."""
    found = {"format": FORMAT, **identity(engine), "replicas": [[key.hex() for key in keys] for keys in contents]}
    return gzip.compress(json.dumps(found).encode(), mtime=0)


def read(path: Path, engines: Sequence[Engine]) -> list[list[bytes]]:
    """What the cache of each of these replicas holds at the start, from the file that all of them name.

    Raises BadInput for a file that is none, and for one that other engines or another number of replicas left.
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
