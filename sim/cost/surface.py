"""A measured function of a whole number and of a position: bent lines where `sim.cost.table.Lines` are straight.

Attention of few short sequences does not fill a device, and libraries change kernels with the context: a straight
line is then several percent of a step off.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.cost.knots import Knots, brief


@dataclass(frozen=True)
class BentLine:
    """A function that is straight between positions.

    From start[i] to the next it is base[i] + rise[i] x (position - start[i]). Before the first position
    it has that one's value; beyond the last it rises as over the last two.
    """

    start: Sequence[float]
    base: Sequence[float]
    rise: Sequence[float]

    def __call__(self, position: float) -> float:
        """The value at one position."""
        piece = max(bisect_right(self.start, position) - 1, 0)
        return self.base[piece] + self.rise[piece] * max(position - self.start[piece], 0.0)

    def over(self, positions: NDArray[np.float64]) -> NDArray[np.float64]:
        """The values at many positions: the same numbers."""
        start, base, rise = (np.asarray(of, np.float64) for of in (self.start, self.base, self.rise))
        piece = np.maximum(np.searchsorted(start, positions, side="right") - 1, 0)
        return np.asarray(base[piece] + rise[piece] * np.maximum(positions - start[piece], 0.0), np.float64)


@dataclass(frozen=True)
class Surface:
    """For every whole number a bent line, from measured points; it never falls with the number.

    at     whole numbers from 0 that rise, at least one
    along  positions from 0 that rise, at least two
    ns     a row for each of `at` with a value for each of `along`

    Between two of `at`, and beyond them, values at each of `along` are those of `Knots`. Raises ValueError for
    other points.
    """

    at: tuple[int, ...]
    along: tuple[float, ...]
    ns: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        if len(self.along) < 2 or self.along[0] < 0 or not all(a < b for a, b in pairwise(self.along)):
            raise ValueError(f"along is {brief(list(self.along))}; expected two positions or more, from 0, that rise")
        if len(self.ns) != len(self.at) or any(len(row) != len(self.along) for row in self.ns):
            raise ValueError(f"expected {len(self.at)} rows of {len(self.along)} values")
        self.knots  # noqa: B018  # checks the points

    def attention(self, start: int, tokens: int) -> float:
        """Of a chunk that follows `start` positions, where the surface is one of chunks by their size."""
        return self.line(tokens)(start)

    def columns(self) -> list[tuple[float, ...]]:
        """The values at each of the positions, by number."""
        return [tuple(row[place] for row in self.ns) for place in range(len(self.along))]

    def line(self, x: int) -> BentLine:
        """The bent line at x."""
        if x not in self.rows:
            values = [column(x) for column in self.knots]
            rise = (np.diff(values) / np.diff(self.along)).tolist()
            self.rows[x] = BentLine(self.along, values, [*rise, max(0.0, rise[-1])])
        return self.rows[x]

    @cached_property
    def knots(self) -> list[Knots]:
        """A function of the number for each of the positions."""
        return [Knots(self.at, column) for column in self.columns()]

    @cached_property
    def rows(self) -> dict[int, BentLine]:
        """The bent lines that were asked for."""
        return {}


def surface(value: Any) -> Surface:
    """A surface of a mapping with `at`, `along` and `ns`; raises KeyError without them, ValueError for wrong ones."""
    rows = tuple(tuple(float(each) for each in row) for row in value["ns"])
    return Surface(tuple(value["at"]), tuple(float(each) for each in value["along"]), rows)
