"""The simplest law of lengths close to those of a trace: a constant, a lognormal, or a few quantiles."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from traces.describe.segments import chord, split
from traces.synthetic.empirical_lengths import Quantiles
from traces.synthetic.lengths import Fixed, Lognormal
from traces.synthetic.token_counts import Length

Integers = NDArray[np.int64]
MOST_KNOTS = 48
GRID = 20_000
CLOSE = 0.004
BY_SAMPLING = 1.5
CLOSE_POINT = 0.03
POINTS = (0.5, 0.99)


def length_law(values: Integers) -> Length:
    """The simplest law close to `values`: all equal, lognormal, or quantiles."""
    if values.min() == values.max():
        return Fixed(int(values[0]))
    logs = np.log(values)
    normal = Lognormal(round(float(values.mean()), 3), sigma=round(float(logs.std()), 4))
    return normal if is_close(normal, values) else quantiles(values)


def is_close(law: Length, values: Integers) -> bool:
    """Whether the law's quantile function is close to that of the values, and its median and p99 within 3%.

    Close: the mean absolute difference is within 0.4% of the mean, or within 1.5 standard errors of it.
    """
    shares, wanted = grid(values)
    found = law.quantile(shares)
    off = [abs(np.interp(p, shares, found) / np.interp(p, shares, wanted) - 1) for p in POINTS]
    near = max(CLOSE * wanted.mean(), BY_SAMPLING * wanted.std() / math.sqrt(len(values)))
    return bool(np.abs(found - wanted).mean() <= near and max(off) <= CLOSE_POINT)


def quantiles(values: Integers) -> Quantiles:
    """The values' quantile function as a piecewise linear one.

    The piece with the largest area of error is split until the total is 0.4% of the mean, or there are 48 knots.
    """
    shares, wanted = grid(values)
    shares = np.concatenate([[0.0], shares, [1.0]])
    wanted = np.concatenate([[values.min()], wanted, [values.max()]])

    def miss(start: int, end: int) -> tuple[float, int]:
        off = np.abs(chord(shares, wanted, start, end) - wanted[start : end + 1])
        return float(off.sum()), start + int(off.argmax())

    middle, high = (int(np.searchsorted(shares, p)) for p in POINTS)
    enough = CLOSE * wanted.mean() * len(shares)
    knots = split([0, middle, high, len(shares) - 1], miss, MOST_KNOTS, lambda misses: sum(misses) <= enough)
    return Quantiles(
        tuple(round(float(shares[k]), 6) for k in knots), tuple(round(float(wanted[k]), 2) for k in knots)
    )


def grid(values: Integers) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """At most 20,000 evenly spaced shares, with median and p99, and the quantiles of the values at them."""
    n = min(len(values), GRID)
    shares = (np.arange(n) + 0.5) / n
    found = np.sort(values)[(shares * len(values)).astype(np.int64)].astype(np.float64)
    for point in POINTS:
        value = np.percentile(values, 100 * point)
        below, above = shares < point, shares > point
        found = np.concatenate([np.minimum(found[below], value), [value], np.maximum(found[above], value)])
        shares = np.concatenate([shares[below], [point], shares[above]])
    return shares, found
