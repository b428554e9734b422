"""A progress bar for what takes over a second, on a terminal. Knows only how many there are of what is counted."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

PATIENCE = 1.0
"""Seconds before a bar appears."""


class Meter:
    """Call it with how many requests (or `what`) have ended; its bar, on standard error, leaves no trace."""

    def __init__(self, label: str, total: int, what: str = "requests") -> None:
        self.label = label
        self.total = total
        self.what = what
        self.appears = time.monotonic() + PATIENCE
        self.bar: Progress | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.stop()

    def __call__(self, ended: int) -> None:
        if self.bar is None and sys.stderr.isatty() and time.monotonic() >= self.appears:
            self.bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn(self.what),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self.bar.add_task(self.label, total=self.total)
            self.bar.start()
        if self.bar is not None:
            self.bar.update(self.bar.task_ids[0], completed=ended)
