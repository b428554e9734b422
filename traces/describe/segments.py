"""Piecewise linear approximation of a curve: the segment with the largest error is split first."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray


def split(
    knots: list[int],
    miss: Callable[[int, int], tuple[float, int]],
    most: int,
    done: Callable[[Sequence[float]], bool],
) -> list[int]:
    """Sorted knots: the piece with the largest error is split until `done(errors)` or there are `most` knots.

    `miss(start, end)` returns the error of a straight piece, and the knot at which to split it.
    """
    knots = sorted(set(knots))
    pieces = [(-miss(start, end)[0], start, end) for start, end in pairwise(knots)]
    heapq.heapify(pieces)
    while len(knots) < most and not done([-piece[0] for piece in pieces]):
        _, start, end = heapq.heappop(pieces)
        middle = miss(start, end)[1]
        if middle in (start, end):
            break
        knots.append(middle)
        for part in ((start, middle), (middle, end)):
            heapq.heappush(pieces, (-miss(*part)[0], *part))
    return sorted(knots)


def chord(x: NDArray[np.float64], y: NDArray[np.float64], start: int, end: int) -> NDArray[np.float64]:
    """The straight line from point `start` to point `end`, at all points from `start` to `end`."""
    return np.interp(x[start : end + 1], x[[start, end]], y[[start, end]])
