"""Intervals of a fit to measured runs: a bootstrap over blocks of requests, and the noise from run to run."""

from __future__ import annotations

import numpy as np

from calibrate.arrays import Floats
from calibrate.fit.log_problem import PULL, SHARES, Problem, log_ratios
from calibrate.fit.measured_run import STATISTICS
from calibrate.fit.repeats import Noise

BLOCKS = 20
"""Consecutive parts of a run's requests that the bootstrap draws from: neighbouring requests are alike."""


def bootstrap(problem: Problem, point: Floats, slope: Floats, again: Noise, draws: int, seed: int) -> Floats:
    """Each free term over samples of blocks of consecutive requests, ns, shape (draws, free terms).

    The same blocks are drawn of the measured and the predicted requests, and besides the noise from run to run
    (`calibrate.fit.repeats`). Each sample moves the solution by one Gauss-Newton step, within the terms' bounds.
    """
    stream = np.random.default_rng(seed)
    pairs = problem.pairs(point)
    metrics = [(place, name) for place, run in enumerate(problem.runs) for name in run.known]
    pulled = np.vstack([slope, PULL * np.eye(len(point))])
    answer = np.linalg.pinv(pulled)
    blocks = [np.arange(len(found)) * BLOCKS // max(len(found), 1) for _, found, _ in pairs]
    moved = []
    here = problem.residuals(point)
    for _ in range(draws):
        taken = stream.integers(0, BLOCKS, BLOCKS)
        moves = list(again.draws(stream))
        parts = []
        for (weight, found, said), block, (place, name) in zip(pairs, blocks, metrics, strict=True):
            rows = np.concatenate([np.flatnonzero(block == each) for each in taken])
            moved_by = moves[place].get(name, np.zeros(len(STATISTICS)))
            parts.append(log_ratios(weight, found[rows], said[rows]) - weight * SHARES * moved_by)
        there = point - answer @ (np.concatenate([*parts, PULL * point]) - here)
        moved.append(np.clip(there, problem.low, problem.high) - point)
    terms = problem.terms(point)
    samples: Floats = np.array([terms[name] for name in problem.free]) * np.exp(np.array(moved))
    return samples
