"""The formats by name: the name a scenario uses, and the module that reads it.

A new format is one module with `read(path, tenant) -> list[Request]`, sorted by arrival, and one line here.
Modules are imported when first used, so that naming the formats costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from sim.request import Request
from traces.errors import BadInput, nearest

FORMATS = {
    "azure": "traces.azure",
}


def read(kind: str, path: Path, tenant: str = "default") -> list[Request]:
    """The requests of a trace file of format `kind`, sorted by arrival, all of tenant `tenant`.

    Raises BadInput for an unknown format (the nearest known is suggested) and whatever the format's reader
    finds wrong with the file.
    """
    if kind not in FORMATS:
        raise BadInput(f"{kind}: unknown trace format; did you mean {nearest(kind, FORMATS)}?")
    requests: list[Request] = import_module(FORMATS[kind]).read(path, tenant)
    return requests
