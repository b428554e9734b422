"""Traces to files, in a few public formats and in one of our own that loses nothing.

`write` gives what a format could not hold, in words; a new format is one module with `write(trace, path)` and a
line here. Files are whole or absent.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from traces.errors import BadInput, nearest
from traces.reading.table import Trace

WRITERS = {
    "parquet": "traces.writers.own",
    "vidur": "traces.writers.vidur",
    "mooncake": "traces.writers.mooncake",
    "tracev2": "traces.writers.tracev2",
}
ENDINGS = {".parquet": "parquet", ".jsonl": "mooncake"}


def format_of(path: Path) -> str:
    """The format that a file name's ending means. Raises BadInput where it means none or several."""
    if path.suffix in ENDINGS:
        return ENDINGS[path.suffix]
    raise BadInput(f"{path}: the format is not clear from the name; expected --to {', '.join(WRITERS)}")


def write(trace: Trace, path: Path, kind: str | None = None) -> list[str]:
    """Write a trace as format `kind`, by default that of the name's ending; returns what is lost, a line each.

    Raises BadInput for an unknown format, a trace of several runs or without arrivals and lengths where the
    format needs one run with them, and a file that cannot be written.
    """
    name = kind or format_of(path)
    if name not in WRITERS:
        raise BadInput(f"{name}: unknown format to write; did you mean {nearest(name, WRITERS)}?")
    lost: list[str] = import_module(WRITERS[name]).write(trace, path)
    return lost
