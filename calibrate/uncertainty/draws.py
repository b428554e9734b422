"""Draws of a step cost from its uncertainty: a cost a run, seeded, stratified, and above 0."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import numpy as np
from scipy.optimize import nnls
from scipy.stats import norm

from calibrate.arrays import Floats
from calibrate.uncertainty.model import Uncertainty
from sim.cost.forms import Curve
from sim.cost.scaled import Scaled

CERTAIN = 1e-9
"""A standard deviation of so small a part of a coefficient, or of a nanosecond, is none."""


def draws(cost: Curve, uncertainty: Uncertainty, count: int, seed: int) -> list[Scaled]:
    """`count` costs, the same for the same seed.

    A Latin hypercube over the three factors and the coefficients: each of `count` slices of equal probability of each
    of them is drawn once, so that few draws give steady quantiles.
    """
    lot = np.random.default_rng(Random(f"{seed}/uncertainty").getrandbits(128))
    slices = lot.permuted(np.tile(np.arange(count), (3 + len(uncertainty.terms), 1)), axis=1).T
    normal: Floats = norm.ppf((slices + lot.random(slices.shape)) / count)
    spread = np.array([uncertainty.common, uncertainty.decode, uncertainty.prompts])
    common, decode, prompts = (normal[:, :3] * spread).T
    curves = curves_of(cost, uncertainty, normal[:, 3:])
    factors = zip(
        (uncertainty.decode_median * np.exp(common + decode)).tolist(),
        (uncertainty.prompts_median * np.exp(common + prompts)).tolist(),
        strict=True,
    )
    return [Scaled(curve, *both) for curve, both in zip(curves, factors, strict=True)]


def curves_of(cost: Curve, uncertainty: Uncertainty, normal: Floats) -> Iterator[Curve]:
    """The curve with coefficients drawn for each row of standard normal numbers, shape (draws, terms)."""
    fitted = np.array([getattr(cost, name) for name in uncertainty.terms], np.float64)
    if not len(fitted):
        yield from [cost] * len(normal)
        return
    covariance = np.array(uncertainty.covariance)
    deviation = np.sqrt(np.maximum(np.diag(covariance), 0))
    scale = np.where(deviation > CERTAIN * np.maximum(np.abs(fitted), 1.0), deviation, 1.0)
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    values = np.maximum(values, 0)
    root = vectors * np.sqrt(values)
    metric = (vectors / np.sqrt(np.maximum(values, 1e-9))).T
    for row in normal:
        drawn = fitted / scale + root @ row
        if drawn.min() < 0:
            drawn = nnls(metric, metric @ drawn)[0]
        yield replace(cost, **dict(zip(uncertainty.terms, (drawn * scale).tolist(), strict=True)))
