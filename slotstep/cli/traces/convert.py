"""`slotstep trace convert`: a trace in another format."""

from __future__ import annotations

from slotstep.cli.params import Columns, RunName, TargetFile, TargetFormat, TraceFile, TraceFormat
from slotstep.cli.traces.reading import read, report_losses


def convert(
    file: TraceFile,
    out: TargetFile,
    kind: TraceFormat = None,
    columns: Columns = None,
    run: RunName = None,
    to: TargetFormat = None,
) -> None:
    """Write a trace in another format, and say what that format cannot hold."""
    from traces import writers

    trace = read(file, kind, columns, run)
    report_losses(writers.write(trace, out, to), out)
