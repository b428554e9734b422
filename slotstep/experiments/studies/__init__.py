"""The shipped studies: the grids in this folder, and the modules of `reports.studies` that draw them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Study:
    """A question, the grids that answer it, and the module of `reports.studies` that shows the answer."""

    name: str
    question: str
    grids: tuple[str, ...]

    def draw(self, frames: list[pd.DataFrame]) -> Figure:
        """The figure, from the tables of the grids in their order."""
        drawn: Callable[..., Figure] = self.shown.draw
        return drawn(*frames)

    def lines(self, frames: list[pd.DataFrame]) -> list[str]:
        """The findings as text."""
        said: list[str] = self.shown.lines(*frames)
        return said

    @property
    def shown(self) -> Any:
        """The module."""
        return import_module(f"reports.studies.{self.name}")


STUDIES: Mapping[str, Study] = {
    study.name: study
    for study in (
        Study("tail", "what the spread of output lengths costs, static and continuous", ("tail", "tail-defeats")),
        Study("chunk", "time between tokens against time to the first, by token budget", ("chunk",)),
        Study("fairness", "who waits when one tenant floods, by policy", ("fairness",)),
        Study("prediction", "mean latency against the error of predicted lengths", ("prediction",)),
        Study("pages", "waste against page size, and what it costs", ("pages",)),
        Study("load", "latency against load, by policy", ("load",)),
    )
}


def path(grid: str) -> Path:
    """The file of a grid."""
    return HERE / f"{grid}.yaml"
