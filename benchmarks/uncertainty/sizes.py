"""Sizes of the error model from cells, and the share of cells that its intervals cover.

The log error of a cell is a x log f_decode + b x log f_prompts to first order, a and b its derivatives. Medians of
the factors are the robust least-squares solution of that; variances the least-squares solution, at least 0, of the
squared residuals, with those beyond two robust standard deviations of their metric at two. Then spreads are scaled
until 90% of the cells of each metric are covered: `prompts` by TTFT, the others by TPOT. A metric of a group of ten
cells or more counts as one, one of fewer as so many tenths.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares, nnls
from scipy.stats import norm

from benchmarks.uncertainty.corpus import Cell
from calibrate.arrays import Floats
from calibrate.uncertainty.model import MEDIANS, SPREADS, Uncertainty

SHARE = 0.9
REACH = float(norm.ppf(0.5 + SHARE / 2))
ROUNDS = 30
SMALL = 0.03
"""Weighted log errors of this size and less count by their square, larger ones by their size (soft L1)."""


def matrix(cells: Sequence[Cell]) -> Floats:
    """The derivatives, shape (cells, 2)."""
    return np.array([[cell.decode, cell.prompts] for cell in cells])


def learned(cells: Sequence[Cell], source: str = "") -> Uncertainty:
    """The sizes that these cells show."""
    sizes = Counter((cell.group, cell.metric) for cell in cells)
    weight = np.array([1 / max(sizes[cell.group, cell.metric], 10) for cell in cells])
    root = np.sqrt(weight)
    slope, error = matrix(cells), np.array([cell.error for cell in cells])

    def missed(at: Floats) -> Floats:
        away: Floats = (error - slope @ at) * root
        return away

    median = least_squares(missed, np.zeros(2), loss="soft_l1", f_scale=SMALL).x
    rest = error - slope @ median
    parts = np.column_stack([slope.sum(axis=1), slope]) ** 2
    variance = nnls(parts * root[:, None], np.minimum(np.abs(rest), far(cells, rest)) ** 2 * root)[0]
    metrics = np.array([cell.metric for cell in cells])
    for _ in range(ROUNDS):
        for name in set(metrics.tolist()):
            mine = metrics == name
            scaled = np.array([True] * 3) if mine.all() else np.array([name != "ttft"] * 2 + [name == "ttft"])
            ratio = np.abs(rest[mine]) / np.sqrt(np.maximum(parts[mine] @ variance, 1e-12))
            variance[scaled] *= (reached(ratio, weight[mine]) / REACH) ** 2
    medians, spreads = np.exp(median).tolist(), np.sqrt(variance).tolist()
    factors = zip((*MEDIANS, *SPREADS), (*medians, *spreads), strict=True)
    return Uncertainty(**dict(factors), source=source)


def reached(values: Floats, weight: Floats) -> float:
    """The value that SHARE of the weight does not exceed."""
    order = np.argsort(values)
    place = int(np.searchsorted(np.cumsum(weight[order]), SHARE * weight.sum()))
    return float(values[order][min(place, len(order) - 1)])


def far(cells: Sequence[Cell], rest: Floats) -> Floats:
    """For each cell, twice the robust standard deviation of its metric: 1.4826 x the median size of the errors."""
    metrics = np.array([cell.metric for cell in cells])
    by_metric = {name: 2 * 1.4826 * float(np.median(np.abs(rest[metrics == name]))) for name in set(metrics.tolist())}
    return np.array([by_metric[name] for name in metrics.tolist()])


def covered(cells: Sequence[Cell], sizes: Uncertainty) -> list[bool]:
    """Whether the 90% interval of each cell holds what was measured."""
    slope = matrix(cells)
    variance = np.array([sizes.common, sizes.decode, sizes.prompts]) ** 2
    spread = np.sqrt(np.column_stack([slope.sum(axis=1), slope]) ** 2 @ variance)
    middle = slope @ np.log([sizes.decode_median, sizes.prompts_median])
    found: list[bool] = (np.abs(np.array([cell.error for cell in cells]) - middle) <= REACH * spread).tolist()
    return found


@dataclass(frozen=True)
class Coverage:
    """Of one group: the cells of a metric, how many of them are covered, and their median log error."""

    group: str
    metric: str
    cells: int
    covered: int
    error: float


def by_group(cells: Sequence[Cell], sizes: Callable[[str], Uncertainty]) -> list[Coverage]:
    """The coverage of each group by the sizes for it."""
    found = []
    for group in dict.fromkeys(cell.group for cell in cells):
        used = sizes(group)
        for metric in dict.fromkeys(cell.metric for cell in cells if cell.group == group):
            mine = [cell for cell in cells if (cell.group, cell.metric) == (group, metric)]
            error = float(np.median([cell.error for cell in mine]))
            found.append(Coverage(group, metric, len(mine), sum(covered(mine, used)), error))
    return found


def left_out(cells: Sequence[Cell]) -> list[Coverage]:
    """The coverage of each group by the sizes of all others."""
    return by_group(cells, lambda group: learned([cell for cell in cells if cell.group != group]))
