"""Sizes of the error model from cells, and the share of cells that its intervals cover.

The log error of a cell is a x log f_decode + b x log f_prompts to first order, a and b its derivatives. Medians of
the factors are the least-squares solution of that; variances that of the squared residuals, at least 0. All spreads
are scaled at the end by one number, so that 90% of the cells are covered. A metric of a group of ten cells or more
counts as one, one of fewer as so many tenths.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls
from scipy.stats import norm

from benchmarks.uncertainty.corpus import Cell
from calibrate.arrays import Floats
from calibrate.uncertainty.model import MEDIANS, SPREADS, Uncertainty

SHARE = 0.9
REACH = float(norm.ppf(0.5 + SHARE / 2))


def matrix(cells: Sequence[Cell]) -> Floats:
    """The derivatives, shape (cells, 2)."""
    return np.array([[cell.decode, cell.prompts] for cell in cells])


def learned(cells: Sequence[Cell], source: str = "") -> Uncertainty:
    """The sizes that these cells show."""
    sizes = Counter((cell.group, cell.metric) for cell in cells)
    weight = np.array([1 / max(sizes[cell.group, cell.metric], 10) for cell in cells])
    root = np.sqrt(weight)
    slope, error = matrix(cells), np.array([cell.error for cell in cells])
    median = np.linalg.lstsq(slope * root[:, None], error * root, rcond=None)[0]
    rest = error - slope @ median
    parts = np.column_stack([slope.sum(axis=1), slope]) ** 2
    variance = nnls(parts * root[:, None], rest**2 * root)[0]
    ratio = np.abs(rest) / np.sqrt(np.maximum(parts @ variance, 1e-12))
    order = np.argsort(ratio)
    reached = np.searchsorted(np.cumsum(weight[order]), SHARE * weight.sum())
    scale = float(ratio[order][min(reached, len(order) - 1)]) / REACH
    medians, spreads = np.exp(median).tolist(), (scale * np.sqrt(variance)).tolist()
    factors = zip((*MEDIANS, *SPREADS), (*medians, *spreads), strict=True)
    return Uncertainty(**dict(factors), source=source)


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
