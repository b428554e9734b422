"""Progress bars on a terminal, for work of more than a second."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from slotstep.cli.output import say

if TYPE_CHECKING:
    from slotstep.experiments.capacity.finder import Standing
    from slotstep.experiments.capacity.question import Variant
    from slotstep.experiments.sweeps.sweep import Tally

PATIENCE = 1.0
"""Seconds before a bar appears."""
EVERY = 60.0
"""Seconds between two lines of progress where there is no terminal."""


class Meter:
    """A progress bar on standard error that disappears at the end; called with the number of requests (or `what`)
    ended.
    """

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


class SweepProgress:
    """Progress of a sweep on standard error: a bar on a terminal, else a line every EVERY seconds."""

    def __init__(self) -> None:
        self.tally: Tally | None = None
        self.began = self.said = time.monotonic()

    def __enter__(self) -> Self:
        self.meter = Meter("sweep", 0, "runs")
        return self

    def __exit__(self, *_: object) -> None:
        self.meter.__exit__(None, None, None)

    def __call__(self, tally: Tally) -> None:
        self.tally = tally
        self.meter.total = tally.total - tally.before
        self.meter(tally.done)
        now = time.monotonic()
        if not sys.stderr.isatty() and tally.done > 1 and now - self.said >= EVERY:
            self.said = now
            ended = tally.before + tally.done
            left = (now - self.began) / tally.done * (tally.total - ended)
            say(f"{ended} of {tally.total} runs, {tally.failed} failed, about {left:.0f} s left")


class SearchProgress:
    """Progress of a capacity search on standard error: what is tried, and what is known.

    On a terminal a line for each variant that is searched, else one every EVERY seconds. Values are in `unit`.
    """

    def __init__(self, unit: str) -> None:
        self.unit = unit
        self.lines: dict[int, str] = {}
        self.said = time.monotonic()
        self.live = Live(console=Console(stderr=True), transient=True)

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.live.stop()

    def __call__(self, variant: Variant, standing: Standing) -> None:
        self.lines[id(variant)] = line = f"{variant.label}: {self.text(standing)}"
        if sys.stderr.isatty():
            self.live.update(Text("\n".join(self.lines.values())))
        elif time.monotonic() - self.said >= EVERY:
            self.said = time.monotonic()
            say(line)

    def text(self, standing: Standing) -> str:
        """A standing in words."""
        known = [
            f"{verdict} {value:.4g}"
            for verdict, value in (("met at", standing.met), ("not met at", standing.missed))
            if value is not None
        ]
        values = " and ".join(f"{value:.4g}" for value in standing.tried)
        tried = [f"trying {values} {self.unit} ({standing.runs} runs)"] if values else []
        return "; ".join([*tried, *known])
