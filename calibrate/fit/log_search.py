"""The search of a fit to measured runs: from several starts, then with further terms where they help."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from calibrate.arrays import Floats
from calibrate.fit.log_problem import Problem
from sim.cost.forms import Roofline

SPREAD = 0.7
"""Standard deviation of the starts around the first, of the logarithm of each term."""
LOOKS, TRIALS, ROUNDS = 24, 30, 60
"""Points evaluated once before the search, evaluations from each start, evaluations of the best on all requests."""
BETTER = 0.01
"""A further term has to lower the root mean square of the log ratios by this much: by 1% of the latencies."""
FEWEST = 20
"""Requests with a latency that a run needs."""


def search(problem: Problem, starts: int, seed: int, progress: Callable[[str], None]) -> tuple[Floats, list[float]]:
    """The best point on half of the requests, and the loss reached from each start, the lowest first.

    Points are drawn far around the start and evaluated once each; the search begins at the best `starts` of them.
    """
    stream = np.random.default_rng(seed)
    half = max(FEWEST * 10, problem.first // 2)
    few = Problem(problem.runs, half, problem.start, problem.free, problem.within, problem.form)
    points = [np.zeros(len(problem.free))]
    points += [stream.normal(0.0, SPREAD, len(problem.free)) for _ in range(LOOKS if starts > 1 else 0)]
    points = [np.clip(point, few.low, few.high) for point in points]
    points = sorted(points, key=few.loss)[:starts]
    found = []
    for number, point in enumerate(points, 1):
        progress(f"start {number} of {len(points)}")
        best = few.solve(point, TRIALS)
        found.append((few.loss(best), best))
    found.sort(key=lambda each: each[0])
    return found[0][1], [lowest for lowest, _ in found]


def with_further_terms(
    problem: Problem, point: Floats, estimate: Roofline, further: Sequence[str], progress: Callable[[str], None]
) -> tuple[Problem, Floats]:
    """The problem with those further terms that lower the errors clearly (`BETTER`), and its solution."""
    left = list(further)
    while left:
        slope = problem.slope(point)
        gains = {name: problem.gain(point, slope, name, getattr(estimate, name)) for name in left}
        name = max(gains, key=lambda each: gains[each])
        gain, size = gains[name]
        if gain < BETTER / 2 or not size:
            break
        progress(f"trying {name}")
        left.remove(name)
        start, free = problem.start | {name: size}, (*problem.free, name)
        more = Problem(problem.runs, max(problem.sizes), start, free, problem.within, problem.form)
        there = more.solve(np.append(point, 0.0), ROUNDS)
        if more.rms(there) < problem.rms(point) - BETTER:
            problem, point = more, there
    return problem, point
