"""A law of arrivals like a trace's: piecewise constant rates, and gaps tuned to the dispersion per second.

The rate is constant in pieces, split where it changed by more than chance. Within the pieces gaps are
gamma-distributed; their coefficient of variation is tuned until the dispersion of counts per second is the trace's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sim.request import SECOND
from traces.describe import statistics
from traces.describe.segments import chord, split
from traces.synthetic.arrivals import Arrivals, ArrivalTimes, Ticks
from traces.synthetic.modulated import Piece, Piecewise
from traces.synthetic.streams import Stream

Integers = NDArray[np.int64]
MOST_PIECES = 128
FEWEST_IN_PIECE = 10
BY_CHANCE = 1.63
CV_RANGE = (0.05, 50.0)
TRIALS = 14
TUNED_ON = 300_000


def arrival_law(times: Integers, stream: Stream) -> Arrivals:
    """The law for arrival times in ns after the first arrival."""
    pieces = rate_pieces(times)
    step = statistics.tick(times)

    def law(cv: float) -> Arrivals:
        inside = Piecewise(pieces, round(cv, 4))
        return Ticks(inside, step[0]) if step else inside

    wanted = statistics.dispersion(times)
    return law(1.0) if wanted is None else law(tuned(law, wanted, stream))


def rate_pieces(times: Integers) -> tuple[Piece, ...]:
    """The trace's rates in as few pieces as needed: at most 128, of at least ten requests on average.

    A piece is split where the cumulative count of arrivals is farthest from a straight line, while that distance is
    significant at 1% in a Kolmogorov-Smirnov test of uniform arrivals.
    """
    instants, before = np.unique(times, return_index=True)
    when = np.append(instants, times[-1] + 1).astype(np.float64)
    count = np.append(before, len(times)).astype(np.float64)

    def miss(start: int, end: int) -> tuple[float, int]:
        off = np.abs(chord(when, count, start, end) - count[start : end + 1])
        return float(off.max() / math.sqrt(count[end] - count[start])), start + int(off.argmax())

    most = max(1, min(MOST_PIECES, len(times) // FEWEST_IN_PIECE))
    knots = split([0, len(when) - 1], miss, most + 1, lambda misses: max(misses) <= BY_CHANCE)
    return tuple(
        Piece(
            float(f"{(count[end] - count[start]) / (when[end] - when[start]) * SECOND:.7g}"),
            int(when[end] - when[start]),
        )
        for start, end in pairwise(knots)
    )


def tuned(law: Callable[[float], Arrivals], wanted: float, stream: Stream) -> float:
    """The CV of the gaps at which counts per second of `law(cv)` have the dispersion `wanted`, by bisection.

    Every trial draws from the same stream. Returns an end of CV_RANGE if the dispersion cannot be reached.
    """
    low, high = (math.log(cv) for cv in CV_RANGE)
    for _ in range(TRIALS):
        middle = (low + high) / 2
        found = statistics.dispersion(first_arrivals(law(math.exp(middle)), stream, TUNED_ON))
        low, high = (middle, high) if found is not None and found < wanted else (low, middle)
    return math.exp((low + high) / 2)


def first_arrivals(law: Arrivals, stream: Stream, n: int) -> Integers:
    """The first `n` arrivals of the law, in ns."""
    clock = ArrivalTimes(law, law.rate, stream / "arrivals")
    horizon = int(n / law.rate * SECOND)
    while len(times := clock.until(horizon)) < n:
        horizon += horizon // 8 + 1
    return times[:n]
