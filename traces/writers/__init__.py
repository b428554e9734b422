"""Write traces to files, in a few public formats and in slotstep's own, which is lossless.

A new format is one module with `write(trace, path)`, which returns what the format cannot hold, and a line here.
Files are written atomically.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from traces.errors import BadInput, nearest
from traces.reading.table import Trace

WRITERS = {
    "parquet": "traces.writers.slotstep_trace",
    "vidur": "traces.writers.vidur",
    "mooncake": "traces.writers.mooncake",
    "tracev2": "traces.writers.tracev2",
}
ENDINGS = {".parquet": "parquet", ".jsonl": "mooncake"}


def format_of(path: Path) -> str:
    """The format of a file name's ending. Raises BadInput if the ending does not determine it."""
    if path.suffix in ENDINGS:
        return ENDINGS[path.suffix]
    raise BadInput(f"{path}: the format is not clear from the name; expected --to {', '.join(WRITERS)}")


def write(trace: Trace, path: Path, kind: str | None = None) -> list[str]:
    """Write a trace as format `kind`, by default that of the name's ending; returns what is lost, one line each.

    Raises BadInput for an unknown format, for a trace of several runs or without arrivals or lengths where the format
    needs them, and for a file that cannot be written.
    """
    name = kind or format_of(path)
    if name not in WRITERS:
        raise BadInput(f"{name}: unknown format to write; did you mean {nearest(name, WRITERS)}?")
    lost: list[str] = import_module(WRITERS[name]).write(trace, path)
    return lost
