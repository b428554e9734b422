"""A roofline, or a sum of terms, from a log of steps: relative non-negative least squares.

All terms of a roofline but one are linear in their coefficients, so for a given crossing (the number of tokens at
which arithmetic takes as long as the weight pass) the best non-negative coefficients are found exactly; the crossing
is searched. A sum (`affine`) has no crossing: for machines on which arithmetic does not overlap with reading weights.
Residuals are relative to the measured duration, so a step that something else delayed (a busy host, a garbage
collection) weighs little: the fit tends to undisturbed steps, and noise of sigma biases it by about -sigma^2.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import pandas as pd
from scipy.optimize import minimize_scalar, nnls

from calibrate.arrays import Floats
from calibrate.fit.identifiability import Identified, identify
from calibrate.fit.step_log import predicted
from sim.cost.forms import Affine, Roofline

Cost = Affine | Roofline

BLOCKS = 40
"""Consecutive parts of the log that the bootstrap draws from: neighbouring steps are alike."""
FEWEST = 20


@dataclass(frozen=True)
class StepFit:
    """A cost fitted to steps, and its uncertainty.

    intervals   5th and 95th percentile of each coefficient over block-bootstrap samples, ns
    covariance  of the coefficients over these samples, ns^2, shape (terms, terms), in the order of `intervals`, times
                blocks / (blocks - terms): the fit has followed the blocks with so many coefficients
    identified  which of the coefficients the steps determine
    errors      predicted over measured duration, less 1, of each step used, shape (steps,)
    held_out    the same of the steps held out; empty: none were
    """

    cost: Cost
    intervals: dict[str, tuple[float, float]]
    covariance: Floats
    identified: Identified
    errors: Floats
    held_out: Floats

    @cached_property
    def residuals(self) -> dict[str, dict[str, float]]:
        """Of the fitted and of the kept-back steps: `n`, `median`, and of their sizes `mean_abs` and `p90_abs`."""
        return {name: described(found) for name, found in (("fitted", self.errors), ("held_out", self.held_out))}


def described(errors: Floats) -> dict[str, float]:
    """The errors of steps in four numbers; only `n` where there are none."""
    if not len(errors):
        return {"n": 0}
    size = np.abs(errors)
    found = {"median": np.median(errors), "mean_abs": size.mean(), "p90_abs": np.percentile(size, 90)}
    return {"n": len(errors)} | {name: float(value) for name, value in found.items()}


def fit(
    steps: pd.DataFrame, hold_out: float = 0.25, draws: int = 100, seed: int = 0, form: str = "roofline"
) -> StepFit:
    """The cost of a form (one of `FORMS`) that is nearest to these steps (columns of `calibrate.fit.step_log`).

    The last `hold_out` of the steps is kept back and predicted. Raises ValueError for fewer than 20 steps, for a
    share outside [0, 1) and for an unknown form.
    """
    if not 0 <= hold_out < 1:
        raise ValueError(f"hold-out is {hold_out}; expected a share from 0 to below 1")
    if form not in FORMS:
        raise ValueError(f"form is {form}; expected {' or '.join(FORMS)}")
    kept = len(steps) - round(len(steps) * hold_out)
    if kept < FEWEST:
        raise ValueError(f"{kept} steps to fit; expected at least {FEWEST}")
    used, rest = steps.iloc[:kept], steps.iloc[kept:]
    problem = FORMS[form](used)
    crossing = problem.crossing()
    cost = problem.cost(crossing)
    samples = bootstrap(problem, crossing, draws, seed)
    return StepFit(
        cost,
        percentiles(problem.terms, samples),
        np.cov(samples, rowvar=False) * BLOCKS / (BLOCKS - len(problem.terms)),
        identify(problem.terms, problem.sensitivity(crossing), errors(cost, used)),
        errors(cost, used),
        errors(cost, rest),
    )


def errors(cost: Cost, steps: pd.DataFrame) -> Floats:
    """Predicted over measured duration, less 1, of each step."""
    found: Floats = predicted(cost, steps) / steps["duration_ns"].to_numpy(np.float64) - 1
    return found


class Problem(ABC):
    """The steps as a least-squares problem, for any crossing and any multiplicity of the steps."""

    linear: ClassVar[tuple[str, ...]]
    terms: ClassVar[tuple[str, ...]]

    def __init__(self, steps: pd.DataFrame) -> None:
        self.measured = steps["duration_ns"].to_numpy(np.float64)
        self.decodes = steps["decodes"].to_numpy(np.float64)
        self.chunk_tokens = steps["chunk_tokens"].to_numpy(np.float64)
        self.context = steps["context"].to_numpy(np.float64)
        self.chunks = steps["chunks"].to_numpy(np.float64)
        self.work = steps["chunk_work"].to_numpy(np.float64)

    @abstractmethod
    def design(self, crossing: float) -> Floats:
        """A column for each of `linear`: what its coefficient is multiplied by in each step."""

    @abstractmethod
    def crossing(self) -> float:
        """The best crossing."""

    @abstractmethod
    def near(self, crossing: float) -> list[float]:
        """Crossings to try for a bootstrap sample."""

    @abstractmethod
    def cost(self, crossing: float, times: Floats | None = None) -> Cost:
        """The best cost with this crossing."""

    @abstractmethod
    def sensitivity(self, crossing: float) -> Floats:
        """How the relative prediction of each step changes with the logarithm of each of `terms`."""

    def solve(self, crossing: float, times: Floats | None = None) -> tuple[Floats, float]:
        """The best coefficients of `linear`, and the sum of their squared relative residuals.

        `times` is how often each step counts (a bootstrap sample); once if not given. The coefficient of a column of
        zeros is 0.
        """
        design = self.design(crossing)
        often = np.ones(len(design)) if times is None else np.sqrt(times)
        rows = design * (often / self.measured)[:, None]
        length = np.sqrt((rows**2).sum(axis=0))
        seen = length > 0
        length = np.where(seen, length, 1.0)
        gram, aim = (rows / length).T @ (rows / length), (rows / length).T @ often
        root = np.linalg.cholesky(gram + 1e-12 * np.eye(len(self.linear)))
        found = np.where(seen, nnls(root.T, np.linalg.solve(root, aim))[0] / length, 0.0)
        return found, float(((rows @ found - often) ** 2).sum())

    def coefficients(self, crossing: float, times: Floats | None = None) -> dict[str, float]:
        """The best coefficients of `linear` by name."""
        return dict(zip(self.linear, self.solve(crossing, times)[0].tolist(), strict=True))


class AsSum(Problem):
    """The steps as a sum of parts (`sim.cost.forms.Affine`)."""

    linear = ("base", "per_sequence", "per_prefill_token", "per_context_token", "per_chunk_work")
    terms = linear

    def design(self, crossing: float) -> Floats:
        """A column for each of `linear`."""
        ones = np.ones(len(self.decodes))
        return np.column_stack([ones, self.decodes, self.chunk_tokens, self.context, self.work])

    def crossing(self) -> float:
        """There is none: any number will do."""
        return 1.0

    def near(self, crossing: float) -> list[float]:
        """The given one only."""
        return [crossing]

    def cost(self, crossing: float, times: Floats | None = None) -> Affine:
        """The best sum."""
        return Affine(**self.coefficients(crossing, times))

    def sensitivity(self, crossing: float) -> Floats:
        """Each part's share of each step."""
        return shares(self.design(crossing) * self.solve(crossing)[0])


class AsRoofline(Problem):
    """The steps as a roofline (`sim.cost.forms.Roofline`)."""

    linear = ("host", "weight_pass", "per_context_token", "per_chunk", "per_chunk_work", "per_sequence")
    terms = (*linear, "per_token")

    def __init__(self, steps: pd.DataFrame) -> None:
        super().__init__(steps)
        self.tokens = self.decodes + self.chunk_tokens

    def design(self, crossing: float) -> Floats:
        """A column for each of `linear`: weights and arithmetic are one, in units of the weight pass."""
        matrix_time = (1 + (self.tokens / crossing) ** 4) ** 0.25
        sequences = self.decodes + self.chunks
        return np.column_stack(
            [np.ones(len(matrix_time)), matrix_time, self.context, self.chunks, self.work, sequences]
        )

    def crossing(self) -> float:
        """The best number of tokens at which arithmetic takes as long as the weight pass."""
        low, high = np.log(max(self.tokens.min(), 1.0) / 4), np.log(self.tokens.max() * 4)
        grid = np.linspace(low, high, 25)
        losses = [self.solve(float(np.exp(point)))[1] for point in grid]
        best = int(np.argmin(losses))
        found = minimize_scalar(
            lambda point: self.solve(float(np.exp(point)))[1],
            bounds=(grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]),
            method="bounded",
            options={"xatol": 1e-3},
        )
        return float(np.exp(found.x if found.fun < losses[best] else grid[best]))

    def near(self, crossing: float) -> list[float]:
        """The given one, and others within a factor of two."""
        return [crossing * factor for factor in (0.5, 0.7, 0.85, 1.0, 1.18, 1.4, 2.0)]

    def cost(self, crossing: float, times: Floats | None = None) -> Roofline:
        """The best roofline with this crossing."""
        found = self.coefficients(crossing, times)
        return Roofline(graph_sizes=(), **found, per_token=found["weight_pass"] / crossing)

    def sensitivity(self, crossing: float) -> Floats:
        """Each part's share of each step; of weights and arithmetic each by how much of their maximum it is."""
        parts = self.design(crossing) * self.solve(crossing)[0]
        weights = 1 / (1 + (self.tokens / crossing) ** 4)
        matrix_time = self.linear.index("weight_pass")
        every = np.column_stack([parts, parts[:, matrix_time] * (1 - weights)])
        every[:, matrix_time] *= weights
        return shares(every)


def shares(parts: Floats) -> Floats:
    """Each column's share of its row."""
    found: Floats = parts / np.maximum(parts.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    return found


FORMS: dict[str, type[Problem]] = {"roofline": AsRoofline, "affine": AsSum}
"""What a step can be fitted as, by the names of costs in a scenario."""


def bootstrap(problem: Problem, crossing: float, draws: int, seed: int) -> Floats:
    """Coefficients over samples of blocks of steps, shape (draws, terms); the crossing is searched near the best."""
    lot = np.random.default_rng(seed)
    block = np.arange(len(problem.measured)) * BLOCKS // len(problem.measured)
    costs = []
    for _ in range(draws):
        times = np.bincount(lot.integers(0, BLOCKS, BLOCKS), minlength=BLOCKS)[block].astype(np.float64)
        near = problem.near(crossing)
        costs.append(problem.cost(min(near, key=lambda point: problem.solve(point, times)[1]), times))
    return np.array([[getattr(cost, name) for name in problem.terms] for cost in costs])


def percentiles(terms: Sequence[str], samples: Floats) -> dict[str, tuple[float, float]]:
    """5th and 95th percentile of each term over samples, shape (draws, terms)."""
    low, high = np.percentile(samples, (5, 95), axis=0).tolist()
    return dict(zip(terms, zip(low, high, strict=True), strict=True))
