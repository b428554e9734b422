"""`slotstep parity`: every decision of the scheduler against an engine's log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from slotstep.cli.params import Kernel


def parity(
    case: Annotated[Path, typer.Argument(help="The requests and the engine's options, JSON, plain or gzipped.")],
    log: Annotated[Path, typer.Argument(help="What the engine decided, JSON lines, plain or gzipped.")],
    kernel: Kernel = None,
) -> None:
    """Replay a case and compare every decision with an engine's log; exit code 1 if any differs."""
    from slotstep.parity import parity as comparison

    report = comparison.check(case, log)
    print(*comparison.lines_of(report), sep="\n", flush=True)
    if report.mismatches:
        raise typer.Exit(1)
