"""Few points that reproduce a function of a whole number: jumps are kept on both sides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression

from calibrate.arrays import Floats
from sim.cost.knots import Knots

Points = dict[str, list[Any]]

CLOSE = 0.002
"""Relative error below which no further point is taken."""
MOST = 200
"""Points at most."""
JUMP = 0.01
"""A rise from one whole number to the next that is kept as a jump."""


def sampled(of: Callable[[int], float], last: int) -> Points:
    """Points of a function of 1 to `last`, so that a `Knots` of them is within `CLOSE` of it wherever it rises.

    Every whole number is evaluated. Where the function falls it is replaced by the closest one that does not, in
    relative squares.
    """
    values = np.array([of(x) for x in range(1, last + 1)], np.float64)
    return chosen(rising(values))


def rising(values: Floats) -> Floats:
    """The sequence that never falls and is closest in relative squares (pool adjacent violators)."""
    weights = 1 / np.maximum(values, 1e-9) ** 2
    return np.asarray(isotonic_regression(values, weights=weights).x, np.float64)


def chosen(values: Floats) -> Points:
    """Points of values at 1, 2, ...: the ends and the jumps, then the worst of each gap until all are close."""
    last = len(values)
    jumps = np.flatnonzero(np.diff(values) > JUMP * values[:-1])
    if len(jumps) > MOST // 4:
        steepest = np.argsort(-np.diff(values)[jumps] / values[jumps])[: MOST // 4]
        jumps = np.sort(jumps[steepest])
    places = {0, last - 1, *jumps.tolist(), *(jumps + 1).tolist()}
    while len(places) < MOST:
        at = np.array(sorted(places))
        fitted = np.array(Knots(tuple((at + 1).tolist()), tuple(values[at].tolist())).laid_out[1:])
        errors = np.abs(fitted / values - 1)
        gaps = np.searchsorted(at, np.arange(last), side="right")
        worst = [int(np.flatnonzero(gaps == gap)[np.argmax(errors[gaps == gap])]) for gap in np.unique(gaps)]
        found = sorted((place for place in worst if errors[place] > CLOSE), key=lambda place: -errors[place])
        if not found:
            break
        places.update(found[: MOST - len(places)])
    at = np.array(sorted(places))
    return {"at": (at + 1).tolist(), "ns": values[at].tolist()}
