"""The largest good value, where all values above some threshold are bad: an estimate, then the bracket around it.

An estimate asks cheap questions about two values at a time and may be wrong. The bracket asks the full question,
first at the estimate, and moves away from it by growing factors, so that a good estimate costs two answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

SPAN = 1.5
"""Factor between the two values that an estimate begins with."""
CLOSE = 1.06
"""An estimate ends once it is within this factor."""
FARTHEST = 1e5
"""The search gives up once it is this factor away from where it began: then the bracket has one end only."""
ROUNDING = 1e-5
"""Relative error of values that are rounded to six digits."""


@dataclass(frozen=True)
class Bracket:
    """The largest value found good and the smallest found bad above it; None if there was none."""

    good: float | None
    bad: float | None


def estimate(good: Callable[[Sequence[float]], Sequence[bool]], start: float) -> float:
    """An estimate of the largest good value, by answers to two values at a time; `start` is thought to be above."""
    low: float | None = None
    high: float | None = None
    pair = (start / SPAN, start)
    while low is None or high is None:
        lower, upper = good(pair)
        if upper:
            low, pair = pair[1], (pair[1] * SPAN, pair[1] * SPAN**2)
        elif lower:
            low, high = pair
        else:
            high, pair = pair[0], (pair[0] / SPAN**2, pair[0] / SPAN)
        if not 1 / FARTHEST < pair[0] / start < FARTHEST:
            return pair[0]
    while high / low > CLOSE:
        third = (high / low) ** (1 / 3)
        pair = (low * third, low * third**2)
        lower, upper = good(pair)
        if upper:
            low = pair[1]
        elif lower:
            low, high = pair
        else:
            high = pair[0]
    return low


def largest(good: Callable[[float], bool], start: float, tolerance: float) -> Bracket:
    """The largest good value within a relative `tolerance`, starting from `start`."""
    here, factor = start, 1 + tolerance
    low: float | None = None
    high: float | None = None
    while low is None or high is None:
        if good(here):
            low, here = here, here * factor
        else:
            high, here = here, here / factor
        if not 1 / FARTHEST < here / start < FARTHEST:
            return Bracket(low, high)
        factor *= factor
    while high / low > (1 + tolerance) * (1 + ROUNDING):
        middle = math.sqrt(low * high)
        if good(middle):
            low = middle
        else:
            high = middle
    return Bracket(low, high)


def fewest(good: Callable[[int], bool], most: int) -> Bracket:
    """The smallest whole number from 1 to `most` that is good, given that all larger ones are.

    In the bracket: `good` is that number, `bad` the one below it (None if it is 1).
    """
    bad, here = 0, 1
    while here <= most and not good(here):
        bad, here = here, 2 * here
    if here > most:
        if bad == most or not good(most):
            return Bracket(None, most)
        here = most
    while here - bad > 1:
        middle = (here + bad) // 2
        if good(middle):
            here = middle
        else:
            bad = middle
    return Bracket(here, bad or None)
