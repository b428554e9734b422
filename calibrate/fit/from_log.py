"""A cost from measured requests: the coefficients whose simulation has the latencies that were measured.

The simulator is inside the fit (`calibrate.fit.log_problem`); the search starts from several points
(`calibrate.fit.log_search`). A term beyond the core is added only if it lowers the errors clearly: terms that the
runs do not determine stay at 0 and are reported. Only the first requests of each run are used: the rest, and whole
runs held out, judge the result.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from calibrate.arrays import Floats
from calibrate.fit.from_steps import percentiles
from calibrate.fit.identifiability import Identified, identify
from calibrate.fit.initial import initial_estimate
from calibrate.fit.log_intervals import bootstrap
from calibrate.fit.log_problem import AFFINE, CORE, DELAY, FURTHER, Problem, priced, terms_of
from calibrate.fit.log_search import FEWEST, ROUNDS, search, with_further_terms
from calibrate.fit.measured_run import METRICS, MeasuredRun, compared
from calibrate.fit.repeats import Noise, noise
from sim.cost.forms import Curve, Roofline
from sim.request import Nanoseconds

FIRST_DELAY = 2e6
"""Where the search for a free delay starts, ns."""


@dataclass(frozen=True)
class LogFit:
    """A cost fitted to measured runs, and its uncertainty.

    delay       ns between client and engine, part of latencies measured at the client
    free        the terms that were fitted, `delay` among them if it was
    left_out    terms that were tried and left at 0: they do not lower the errors clearly
    intervals   5th and 95th percentile of each fitted term, ns, over bootstrap samples of blocks of requests and the
                noise from run to run as far as it is known
    covariance  of the fitted terms over these samples, ns^2, shape (free, free)
    noise       by how much runs of one setting differ
    identified  which of the fitted terms the runs determine
    errors      `calibrate.fit.measured_run.compared` of every run with the columns `run` and `part`: "fitted" for the
                requests used, "rest" for the later ones of the same run, "held out" for runs held out
    starts      the loss after the first stage from each start, the lowest first; far apart means several minima
    cpu_s       CPU seconds that the fit took, without the held-out runs
    """

    cost: Curve
    delay: Nanoseconds
    free: tuple[str, ...]
    left_out: tuple[str, ...]
    intervals: dict[str, tuple[float, float]]
    covariance: Floats
    noise: Noise
    identified: Identified
    errors: pd.DataFrame
    starts: tuple[float, ...]
    cpu_s: float

    def lines(self) -> list[str]:
        """What the runs do not determine, a sentence each."""
        left = [f"{', '.join(self.left_out)}: left at 0; these runs are met as well without"] if self.left_out else []
        return self.identified.lines() + self.noise.lines() + left


def fit(
    runs: Sequence[MeasuredRun],
    held_out: Sequence[MeasuredRun] = (),
    start: Curve | None = None,
    delay: Nanoseconds = 0,
    free: Sequence[str] = (),
    within: Mapping[str, tuple[float, float]] | None = None,
    first: int = 2000,
    starts: int = 3,
    draws: int = 200,
    seed: int = 0,
    progress: Callable[[str], None] = lambda words: None,
) -> LogFit:
    """The cost whose simulation has the latencies of these runs: a roofline, or, with `free` terms, of any form.

    start     values of the terms that are not free, and the start of those that are; a free term at 0 starts at an
              estimate from the latencies
    delay     ns from client to engine, the start if it is free
    free      which of the terms and `delay` to fit; empty: the core, the delay of clients, and further terms that
              lower the errors clearly
    within    the lowest and highest value of some terms, ns (`calibrate.fit.initial.prior`)
    first     most requests to use of each run; of those, the ones that ended before the last of them was sent
    starts    points to start from, all but one drawn around the first
    draws     bootstrap samples
    progress  is called with a few words at each stage

    Raises ValueError for a run with fewer than 20 requests to compare, and for terms that do not exist.
    """
    begun = time.process_time()
    for run in runs:
        used = len(run.settled(min(first, run.requests)))
        if used < FEWEST or not run.known:
            raise ValueError(f"{run.name}: {used} requests with a latency to compare; expected at least {FEWEST}")
    estimate = initial_estimate([run.measured for run in runs])
    form = start or Roofline()
    chosen = free_terms(runs, free, form)
    begin = {
        name: getattr(form, name) or (getattr(estimate, AFFINE.get(name, name)) if name in chosen else 0.0)
        for name in terms_of(form)
    }
    begin[DELAY] = float(delay) or (FIRST_DELAY if DELAY in chosen else 0.0)
    problem = Problem(runs, first, begin, chosen, within or {}, form)
    point, losses = search(problem, starts, seed, progress)
    progress("refining")
    point = problem.solve(point, ROUNDS)
    further = () if free else tuple(name for name in FURTHER if not begin[name])
    problem, point = with_further_terms(problem, point, estimate, further, progress)
    slope = problem.slope(point)
    terms = problem.terms(point)
    cost, away = priced(form, terms), round(terms[DELAY])
    identified = identify(problem.free, slope, problem.ratios(point))
    again = noise(runs, first)
    samples = bootstrap(problem, point, slope, again, draws, seed)
    spent = time.process_time() - begun
    progress("predicting the held-out runs")
    errors = [run_errors(run, "fitted", cost, away, size) for run, size in zip(runs, problem.sizes, strict=True)]
    errors += [run_errors(run, "held out", cost, away, 0) for run in held_out]
    left_out = tuple(name for name in further if name not in problem.free)
    told = pd.concat(errors, ignore_index=True)
    return LogFit(
        cost,
        away,
        problem.free,
        left_out,
        percentiles(problem.free, samples),
        np.atleast_2d(np.cov(samples, rowvar=False)),
        again,
        identified,
        told,
        tuple(losses),
        spent,
    )


def free_terms(runs: Sequence[MeasuredRun], free: Sequence[str], form: Curve) -> tuple[str, ...]:
    """The terms to fit, in a fixed order. Raises ValueError for a term that the form does not have."""
    known = (*terms_of(form), DELAY)
    chosen = free or ((*CORE, DELAY) if any(run.at_client for run in runs) else CORE)
    for name in chosen:
        if name not in known:
            raise ValueError(f"{name} is no term; expected some of {', '.join(known)}")
    return tuple(name for name in known if name in chosen)


def run_errors(run: MeasuredRun, part: str, cost: Curve, delay: Nanoseconds, used: int) -> pd.DataFrame:
    """Errors of a run: of the requests used, if any, and separately of the others."""
    said = run.predicted(cost, delay)
    taken = run.settled(used) if used else run.measured.iloc[:0]
    others = run.measured[~run.measured["id"].isin(taken["id"])]
    parts = [compared(taken, said, METRICS).assign(part=part), compared(others, said, METRICS).assign(part="rest")]
    if not used:
        parts[1]["part"] = part
    return pd.concat([found for found in parts if len(found)], ignore_index=True).assign(run=run.name)
