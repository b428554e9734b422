"""Bracketing and bisection of the largest good value, where all values above some threshold are bad.

Multiplies by a factor until one value is good and another bad, then bisects geometrically.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

FACTOR = 1.6
MOST_STEPS = 24


@dataclass(frozen=True)
class Bracket:
    """The largest value found good and the smallest found bad above it; None if there was none."""

    good: float | None
    bad: float | None


def largest(good: Callable[[float], bool], start: float, tolerance: float) -> Bracket:
    """The largest good value within a relative `tolerance`, starting from `start`.

    Gives up after MOST_STEPS in one direction: then the bracket has one end only.
    """
    here = start
    low: float | None = None
    high: float | None = None
    for _ in range(MOST_STEPS):
        if good(here):
            low, here = here, here * FACTOR
        else:
            high, here = here, here / FACTOR
        if low is not None and high is not None:
            break
    if low is None or high is None:
        return Bracket(low, high)
    while high / low > 1 + tolerance:
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
