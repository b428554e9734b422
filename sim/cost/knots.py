"""A function of a whole number that never falls, from measured points."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import isfinite

import numpy as np

MOST = 2**20
"""The largest number a table may reach: it is laid out for every whole number up to there."""


@dataclass(frozen=True)
class Knots:
    """A function of a whole number that never falls, from measured points.

    Between points: PCHIP (Fritsch and Carlson 1980), which neither overshoots nor falls. Before the first: its
    value, for a pass over the weights costs the same for one token. Beyond the last: a straight line, as steep as
    the secant over the last octave of the points, for arithmetic and bytes grow in proportion.

    at  whole numbers from 0 that rise, at least one
    y   values there, at least 0; one that is smaller than one before it is raised to that one

    Raises ValueError for other points.
    """

    at: tuple[int, ...]
    y: tuple[float, ...]

    def __post_init__(self) -> None:
        at, y = list(self.at), list(self.y)
        if not at or len(at) != len(y):
            raise ValueError(f"{len(at)} points with {len(y)} values; expected as many of both, at least one")
        rising = all(a < b for a, b in pairwise(at))
        if not all(isinstance(x, int) for x in at) or at[0] < 0 or not rising or at[-1] > MOST:
            raise ValueError(f"at is {brief(at)}; expected whole numbers from 0 to {MOST}, each above the one before")
        if not all(isfinite(value) and value >= 0 for value in y):
            raise ValueError(f"values are {brief(y)}; expected numbers of at least 0")

    @cached_property
    def laid_out(self) -> list[float]:
        """The value at every whole number up to the last point."""
        from scipy.interpolate import PchipInterpolator

        at, y = np.array(self.at, np.float64), np.maximum.accumulate(np.array(self.y, np.float64))
        whole = np.arange(self.at[-1] + 1, dtype=np.float64)
        if len(at) == 1:
            return [float(y[0])] * len(whole)
        with np.errstate(over="ignore"):  # next to a rise of nearly 0 the harmonic mean is 0, by way of infinity
            values = PchipInterpolator(at, y)(np.maximum(whole, at[0]))
        values[list(self.at)] = y
        values = np.minimum(np.maximum.accumulate(values), y[-1])
        return [float(value) for value in values]

    @cached_property
    def growth(self) -> float:
        """How much the value grows with one more, beyond the last point."""
        values, last = self.laid_out, self.at[-1]
        octave = max(self.at[0], last // 2)
        return (values[last] - values[octave]) / (last - octave) if last > octave else 0.0

    def __call__(self, x: int) -> float:
        """The value at a whole number from 0."""
        values = self.laid_out
        return values[x] if x < len(values) else values[-1] + self.growth * (x - self.at[-1])


def brief(value: object) -> str:
    """`value` for a message, cut to 60 characters."""
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
