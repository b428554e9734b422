"""Measured runs as a least-squares problem: how far the statistics of a simulation are from those of each run.

The free terms are fitted as logarithms, so that none is negative. Residuals are the log ratios of statistics (mean,
median, tails) of each latency in each run, with a robust loss, and a weak pull to the start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.optimize import nnls

from calibrate.arrays import Floats
from calibrate.fit.measured_run import STATISTICS, MeasuredRun, pair, statistics
from calibrate.fit.optimizer import descend, jacobian, loss
from sim.cost.forms import Curve

CORE = ("host", "weight_pass", "per_token", "per_context_token")
FURTHER = ("per_sequence", "per_chunk_work", "per_chunk")
AFFINE = {"base": "weight_pass", "per_prefill_token": "per_token"}
"""Terms of an affine cost that a roofline lacks, each with the roofline's term of the same order of magnitude."""
LAUNCHES = "prompt_launches"
TERMS = (*CORE, *FURTHER, LAUNCHES, *AFFINE)
DELAY = "delay"
WEIGHTS = {"ttft_s": 0.5, "tpot_s": 0.5, "e2e_s": 1.0}
"""TTFT depends on single steps and is the noisiest; TPOT repeats most of E2E."""
TAIL = {"mean": 1.0, "p50": 1.0, "p90": 0.7, "p99": 0.5}
SHARES = np.array([TAIL[name] for name in STATISTICS])
ROBUST = 0.05
"""Log ratios well above this count as if they were smaller (soft L1)."""
PULL = 0.01
"""A factor of e away from the start weighs as an error of 1%: it decides only what the data do not."""
WIDTH = 0.05
"""Step of the differences by which the final Jacobian is computed."""
FARTHEST = 6.0
"""Largest absolute logarithm of a term over its start, and the log ratio of a run without a common request."""


class Problem:
    """Residuals of measured runs as a function of the logarithms of the free terms over their start.

    first   most requests of each run that are simulated
    start   all terms of the cost and `delay`, ns
    free    which of them are fitted, the order of a point's coordinates
    within  the lowest and highest value of some terms, ns
    form    the cost whose terms are replaced

    A point is an array of shape (len(free),).
    """

    def __init__(
        self,
        runs: Sequence[MeasuredRun],
        first: int,
        start: Mapping[str, float],
        free: Sequence[str],
        within: Mapping[str, tuple[float, float]],
        form: Curve,
    ) -> None:
        self.form = form
        self.runs, self.first = runs, first
        self.within = dict(within)
        ends = np.array([within.get(name, (0.0, np.inf)) for name in free], np.float64).reshape(-1, 2)
        begun = np.array([start[name] for name in free], np.float64)[:, None]
        with np.errstate(divide="ignore"):
            self.low, self.high = np.clip(np.log(ends / begun), -FARTHEST, FARTHEST).T
        self.sizes = [min(run.requests, first) for run in runs]
        self.used = [run.settled(size) for run, size in zip(runs, self.sizes, strict=True)]
        self.start = dict(start)
        self.free = tuple(free)
        self.cache: dict[bytes, Floats] = {}

    def terms(self, point: Floats) -> dict[str, float]:
        """All terms at a point, ns."""
        moved = {name: self.start[name] * float(np.exp(step)) for name, step in zip(self.free, point, strict=True)}
        return self.start | moved

    def frames(self, point: Floats) -> list[pd.DataFrame]:
        """The predicted latencies of each run at a point."""
        terms = self.terms(point)
        cost, delay = priced(self.form, terms), round(terms[DELAY])
        return [run.predicted(cost, delay, size) for run, size in zip(self.runs, self.sizes, strict=True)]

    def pairs(self, point: Floats) -> list[tuple[float, Floats, Floats]]:
        """Weight, measured and predicted values of each run and metric."""
        return [
            (WEIGHTS[name] / len(self.runs), *pair(used, said, name))
            for run, used, said in zip(self.runs, self.used, self.frames(point), strict=True)
            for name in run.known
        ]

    def residuals(self, point: Floats) -> Floats:
        """Weighted log ratios of the statistics, then the pull to the start, one residual for each free term."""
        key = point.tobytes()
        if key not in self.cache:
            parts = [log_ratios(weight, found, said) for weight, found, said in self.pairs(point)]
            self.cache[key] = np.concatenate([*parts, PULL * point])
        return self.cache[key]

    def rms(self, point: Floats) -> float:
        """The weighted root mean square of the log ratios."""
        return float(np.sqrt((self.ratios(point) ** 2).sum() / self.weight))

    @property
    def weight(self) -> float:
        """The sum of the squared weights of all log ratios."""
        tail = sum(share**2 for share in TAIL.values())
        return sum((WEIGHTS[name] / len(self.runs)) ** 2 * tail for run in self.runs for name in run.known)

    def ratios(self, point: Floats) -> Floats:
        """The residuals without the pull."""
        return self.residuals(point)[: -len(self.free)]

    def loss(self, point: Floats) -> float:
        """The soft L1 loss."""
        return loss(self.residuals(point), ROBUST)

    def solve(self, point: Floats, trials: int) -> Floats:
        """The best point found from this one with about `trials` evaluations."""
        return descend(self.residuals, np.clip(point, self.low, self.high), ROBUST, trials, self.low, self.high)

    def slope(self, point: Floats) -> Floats:
        """The Jacobian of the log ratios, a column for each free term."""
        return jacobian(self.ratios, point, self.ratios(point), WIDTH)

    def gain(self, point: Floats, slope: Floats, name: str, amount: float) -> tuple[float, float]:
        """How much lower the root mean square could be with one more term, and at which value of it, ns.

        Estimated to first order from one simulation with 0.3 `amount`, a likely size; the other terms adapt.
        """
        start = self.start | {name: 0.3 * amount}
        more = Problem(self.runs, max(self.sizes), start, self.free, self.within, self.form)
        here = self.ratios(point)
        found, left = nnls(np.column_stack([slope, -slope, more.ratios(point) - here]), -here)
        return self.rms(point) - float(left / np.sqrt(self.weight)), 0.3 * amount * float(found[-1])


def log_ratios(weight: float, measured: Floats, predicted: Floats) -> Floats:
    """Weighted log ratios of STATISTICS, predicted over measured; FARTHEST if no request is in both."""
    scale = weight * SHARES
    if not len(measured):
        return scale * FARTHEST
    tiny = np.finfo(np.float64).tiny
    found: Floats = scale * np.log(np.maximum(statistics(predicted), tiny) / np.maximum(statistics(measured), tiny))
    return found


def terms_of(form: Curve) -> tuple[str, ...]:
    """The terms that can be fitted of a cost of this form."""
    return tuple(name for name in TERMS if hasattr(form, name))


def priced(form: Curve, terms: Mapping[str, float]) -> Curve:
    """The cost of this form with these terms, ns; `delay` is not part of the cost."""
    return replace(form, **{name: value for name, value in terms.items() if name != DELAY})
