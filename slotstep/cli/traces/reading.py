"""Reading a trace, and the lines on what was written, for the commands of `slotstep trace`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from slotstep.cli.output import say

if TYPE_CHECKING:
    from traces.reading.table import Trace


def read(file: Path, kind: str | None, columns: Sequence[str] | None, run: str | None) -> Trace:
    """The trace in a file, or one run of it; remarks of the reader go to standard error."""
    from traces.errors import BadInput
    from traces.reading.registry import load

    pairs = dict(pair.partition("=")[::2] for pair in columns or ())
    if not all(pairs) or not all(pairs.values()):
        raise BadInput("--map: expected ROLE=COLUMN, such as arrival=ts:ms")
    trace = load(file, kind, pairs or None)
    for line in trace.report.lines():
        say(line)
    return trace if run is None else trace.run(run)


def report_losses(lost: Sequence[str], out: Path) -> None:
    """Say what was lost in writing, and the file."""
    for line in lost:
        say(f"lost: {line}")
    say(f"written to {out}" if lost else f"written to {out}; nothing is lost")
