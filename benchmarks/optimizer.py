"""`python -m benchmarks.optimizer`: evaluations that a fit to measured runs needs, by our optimizer and by scipy's.

Each problem has a hidden roofline: two runs are simulated with noise on every measured latency, and a roofline is
fitted from the initial estimate, once by `calibrate.fit.optimizer.descend` and once by `scipy.optimize.least_squares`
with the same loss, bounds and differences. One evaluation is a simulation of all runs. Printed are the
losses over the lowest that either reached, and the evaluations until within 5% of it; the median over the problems.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.optimize import least_squares

from benchmarks.cases import scheduler
from calibrate.arrays import Floats
from calibrate.fit.initial import initial_estimate
from calibrate.fit.log_problem import CORE, DELAY, ROBUST, Problem
from calibrate.fit.measured_run import METRICS, MeasuredRun
from calibrate.fit.optimizer import WIDTHS, descend, jacobian, loss
from sim.accounting.frames import requests_frame
from sim.cost.forms import Curve, Roofline
from sim.request import Request
from sim.service.cluster import simulate
from traces.synthetic import Lognormal, Poisson, Synthetic, generate

TYPICAL = Roofline(host=8e5, weight_pass=1e7, per_token=44e3, per_context_token=60.0)
LOADS = ((2.0, 100), (12.0, 200))
"""Requests a second and requests of each run."""
NOISE = 0.05
CHECKPOINTS = (15, 30, 60, 90)
CLOSE = 1.05

Minimize = Callable[[Callable[[Floats], Floats], Problem, int], object]


def ours(residuals: Callable[[Floats], Floats], problem: Problem, most: int) -> object:
    """`calibrate.fit.optimizer.descend`."""
    return descend(residuals, np.zeros(len(problem.free)), ROBUST, most, problem.low, problem.high)


def scipys(method: str, width: float) -> Minimize:
    """`scipy.optimize.least_squares` by a method, with a Jacobian of forward differences of this width."""

    def minimize(residuals: Callable[[Floats], Floats], problem: Problem, most: int) -> object:
        def slope(point: Floats) -> Floats:
            return jacobian(residuals, point, problem.residuals(point), width)

        return least_squares(
            residuals,
            np.zeros(len(problem.free)),
            jac=slope,
            bounds=(problem.low, problem.high),
            method=method,  # type: ignore[arg-type]  # one of scipy's names
            loss="soft_l1",
            f_scale=ROBUST,
            max_nfev=most,
        )

    return minimize


OPTIMIZERS: dict[str, Minimize] = {
    "descend": ours,
    "least_squares, trf": scipys("trf", WIDTHS[0]),
    "least_squares, trf, width 0.1": scipys("trf", WIDTHS[1]),
    "least_squares, dogbox": scipys("dogbox", WIDTHS[0]),
    "least_squares, dogbox, width 0.1": scipys("dogbox", WIDTHS[1]),
}


def problem_of(seed: int) -> Problem:
    """Runs of a hidden roofline as a problem that starts from the initial estimate."""
    stream = np.random.default_rng(seed)
    hidden = replace(TYPICAL, **{term: getattr(TYPICAL, term) * np.exp(stream.normal(0, 0.7)) for term in CORE})
    runs = [measured(rate, count, hidden, stream, seed) for rate, count in LOADS]
    estimate = initial_estimate([run.measured for run in runs])
    start = {term: float(getattr(estimate, term)) for term in CORE}
    return Problem(runs, 2000, {**start, DELAY: 0.0}, CORE, {}, Roofline())


def measured(rate: float, count: int, hidden: Curve, stream: np.random.Generator, seed: int) -> MeasuredRun:
    """A run simulated at the hidden cost, with lognormal noise on its latencies."""
    spec = Synthetic(requests=count, arrivals=Poisson(rate), prompt=Lognormal(600, cv=1), output=Lognormal(80, cv=1))
    asked: list[Request] = generate(spec, seed)
    frame = requests_frame(simulate(asked, scheduler(), hidden))
    frame["sent_s"], frame["rank"] = [request.arrival / 1e9 for request in asked], range(count)
    noise = np.exp(stream.normal(0, NOISE, (count, len(METRICS))))
    frame[list(METRICS)] = frame[list(METRICS)] * noise
    return MeasuredRun(
        f"{rate:g}/s",
        frame[["id", "rank", "sent_s", "prompt", "output", *METRICS]],
        count,
        lambda cost, delay, first: [simulate(asked[:first], scheduler(), cost)],
        at_client=False,
    )


def losses(problem: Problem, minimize: Minimize, most: int) -> Floats:
    """The lowest loss after each evaluation, shape (most,)."""
    found: list[float] = []

    def counted(point: Floats) -> Floats:
        residuals = problem.residuals(point)
        found.append(loss(residuals, ROBUST))
        return residuals

    minimize(counted, problem, most)
    reached = np.minimum.accumulate(found[:most])
    return np.append(reached, np.full(most - len(reached), reached[-1]))


def compared(problems: int, most: int) -> pd.DataFrame:
    """A row for each optimizer: median loss over the lowest at CHECKPOINTS, and evaluations until within 5% of it.

    Problems in which an optimizer never comes that close count with `most` evaluations; `reached` is the share of
    the others.
    """
    rows: dict[str, list[list[float]]] = {name: [] for name in OPTIMIZERS}
    for seed in range(problems):
        problem = problem_of(seed)
        curves = {name: losses(problem, minimize, most) for name, minimize in OPTIMIZERS.items()}
        lowest = min(float(curve[-1]) for curve in curves.values())
        for name, curve in curves.items():
            close = np.flatnonzero(curve <= CLOSE * lowest)
            needed = [float(close[0] + 1) if len(close) else float(most), float(len(close) > 0)]
            rows[name].append([*(curve[count - 1] / lowest for count in CHECKPOINTS), *needed])
    columns = [*(f"loss after {count}" for count in CHECKPOINTS), "evaluations", "reached"]
    medians = {name: [*np.median(np.array(values)[:, :-1], axis=0), np.array(values)[:, -1].mean()]
               for name, values in rows.items()}  # fmt: skip
    return pd.DataFrame.from_dict(medians, orient="index", columns=columns)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.optimizer", description=__doc__)
    parser.add_argument("--problems", type=int, default=6, help="hidden rooflines; a quarter of a minute each")
    options = parser.parse_args(arguments)
    print(compared(options.problems, CHECKPOINTS[-1]).round(2).to_string())


if __name__ == "__main__":
    main()
