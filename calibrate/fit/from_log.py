"""A roofline from measured requests: the coefficients whose simulation has the latencies that were measured.

The simulator is inside the fit. Coefficients are fitted as logarithms, so none is negative; residuals are the log
ratios of statistics (mean, median, tails) of each latency in each run, with a robust loss; the search starts from
several points. A term beyond the core is taken in only if the runs are met clearly better with it: what they cannot
tell is left at 0, and said. Only the first requests of each run are used: the rest, and whole runs kept back, judge
the result. Knows no file and no engine (`calibrate.fit.measured_run`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import nnls

from calibrate.fit.identifiability import Identified, identify
from calibrate.fit.initial import guess
from calibrate.fit.measured_run import METRICS, STATISTICS, Cell, compared, pair, statistics
from calibrate.fit.optimizer import descend, jacobian, loss
from calibrate.fit.repeats import Noise, noise
from sim.cost.forms import Curve, Roofline
from sim.request import Nanoseconds

Floats = NDArray[np.float64]

CORE = ("host", "weight_pass", "per_token", "per_context_token")
FURTHER = ("per_sequence", "per_chunk_work", "per_chunk")
TERMS = (*CORE, *FURTHER)
OF_SUMS = {"base": "weight_pass", "per_prefill_token": "per_token"}
"""Terms that a roofline has not, each with the one that is of its order."""
DELAY = "delay"
FIRST_DELAY = 2e6
WEIGHTS = {"ttft_s": 0.5, "tpot_s": 0.5, "e2e_s": 1.0}
"""TTFT hangs on single steps and is the noisiest; TPOT is mostly E2E again."""
TAIL = {"mean": 1.0, "p50": 1.0, "p90": 0.7, "p99": 0.5}
SHARES = np.array([TAIL[name] for name in STATISTICS])
ROBUST = 0.05
"""Log ratios well above this count as if they were smaller (soft L1)."""
PULL = 0.01
"""A factor of e away from the start weighs as an error of 1%: it decides only what the data do not."""
BETTER = 0.01
"""A further term has to lower the root mean square of the log ratios by as much: by 1% of the latencies."""
WIDTH = 0.05
FARTHEST = 6.0
SPREAD = 0.7
LOOKS, TRIALS, ROUNDS = 24, 30, 60
"""Points looked at before the search, evaluations from each start, and evaluations of the best on all requests."""
BLOCKS = 20
FEWEST = 20


@dataclass(frozen=True)
class LogFit:
    """A cost fitted to measured runs, and how far it can be trusted.

    delay       ns between client and engine, part of latencies measured at the client
    free        the terms that were fitted, `delay` among them if it was
    left_out    terms that were tried and left at 0, for the runs are met as well without
    intervals   5th and 95th percentile of each over bootstrap samples of blocks of requests, and of the noise from
                run to run as far as it is known, ns
    noise       what runs of one setting differ by
    identified  what the runs say of the terms that were fitted
    errors      `calibrate.fit.measured_run.compared` of every run with `cell` and `part`: "fitted" for the requests
                used, "rest" for the later ones of the same run, "held out" for runs kept back
    starts      the loss after the first stage from each start, the best first; far apart means a hard problem
    cpu_s       CPU seconds that the fit took, without the hold-out
    """

    cost: Curve
    delay: Nanoseconds
    free: tuple[str, ...]
    left_out: tuple[str, ...]
    intervals: dict[str, tuple[float, float]]
    noise: Noise
    identified: Identified
    errors: pd.DataFrame
    starts: tuple[float, ...]
    cpu_s: float

    def lines(self) -> list[str]:
        """What the runs do not tell, in words."""
        left = [f"{', '.join(self.left_out)}: left at 0; these runs are met as well without"] if self.left_out else []
        return self.identified.lines() + self.noise.lines() + left


class Problem:
    """Runs to match as a function of the logarithms of the free terms, relative to a start."""

    def __init__(
        self,
        cells: Sequence[Cell],
        first: int,
        start: Mapping[str, float],
        free: Sequence[str],
        within: Mapping[str, tuple[float, float]],
        form: Curve,
    ) -> None:
        self.form = form
        self.cells, self.first = cells, first
        self.within = dict(within)
        ends = np.array([within.get(name, (0.0, np.inf)) for name in free], np.float64).reshape(-1, 2)
        begun = np.array([start[name] for name in free], np.float64)[:, None]
        with np.errstate(divide="ignore"):
            self.low, self.high = np.clip(np.log(ends / begun), -FARTHEST, FARTHEST).T
        self.sizes = [min(cell.requests, first) for cell in cells]
        self.used = [cell.settled(size) for cell, size in zip(cells, self.sizes, strict=True)]
        self.start = dict(start)
        self.free = tuple(free)
        self.seen: dict[bytes, Floats] = {}

    def terms(self, point: Floats) -> dict[str, float]:
        """All terms, ns, at a point."""
        moved = {name: self.start[name] * float(np.exp(step)) for name, step in zip(self.free, point, strict=True)}
        return self.start | moved

    def frames(self, point: Floats) -> list[pd.DataFrame]:
        """What is predicted of each run there."""
        terms = self.terms(point)
        cost, delay = priced(self.form, terms), round(terms[DELAY])
        return [cell.predicted(cost, delay, size) for cell, size in zip(self.cells, self.sizes, strict=True)]

    def pairs(self, point: Floats) -> list[tuple[float, Floats, Floats]]:
        """Weight, measured and predicted values of each run and metric."""
        return [
            (WEIGHTS[name] / len(self.cells), *pair(used, said, name))
            for cell, used, said in zip(self.cells, self.used, self.frames(point), strict=True)
            for name in cell.known
        ]

    def residuals(self, point: Floats) -> Floats:
        """Weighted log ratios of the statistics, and the pull to the start; large if nothing is left to compare."""
        key = point.tobytes()
        if key not in self.seen:
            parts = [log_ratios(weight, found, said) for weight, found, said in self.pairs(point)]
            self.seen[key] = np.concatenate([*parts, PULL * point])
        return self.seen[key]

    def rms(self, point: Floats) -> float:
        """The weighted root mean square of the log ratios."""
        return float(np.sqrt((self.ratios(point) ** 2).sum() / self.weight))

    @property
    def weight(self) -> float:
        """The sum of the squared weights of all log ratios."""
        tail = sum(share**2 for share in TAIL.values())
        return sum((WEIGHTS[name] / len(self.cells)) ** 2 * tail for cell in self.cells for name in cell.known)

    def ratios(self, point: Floats) -> Floats:
        """The residuals without the pull."""
        return self.residuals(point)[: -len(self.free)]

    def loss(self, point: Floats) -> float:
        """The robust loss."""
        return loss(self.residuals(point), ROBUST)

    def solve(self, point: Floats, trials: int) -> Floats:
        """The best point found from this one with so many evaluations."""
        return descend(self.residuals, np.clip(point, self.low, self.high), ROBUST, trials, self.low, self.high)

    def slope(self, point: Floats) -> Floats:
        """The Jacobian of the log ratios."""
        return jacobian(self.ratios, point, self.ratios(point), WIDTH)

    def gain(self, point: Floats, slope: Floats, name: str, amount: float) -> tuple[float, float]:
        """How much lower the root mean square could be with one more term, and with how much of it, ns.

        By one simulation: what a part of `amount`, a likely size, changes, along with the others, to first order.
        """
        start = self.start | {name: 0.3 * amount}
        more = Problem(self.cells, max(self.sizes), start, self.free, self.within, self.form)
        here = self.ratios(point)
        found, left = nnls(np.column_stack([slope, -slope, more.ratios(point) - here]), -here)
        return self.rms(point) - float(left / np.sqrt(self.weight)), 0.3 * amount * float(found[-1])


def log_ratios(weight: float, measured: Floats, predicted: Floats) -> Floats:
    """Weighted log ratios of the statistics, predicted over measured."""
    scale = weight * SHARES
    if not len(measured):
        return scale * FARTHEST
    tiny = np.finfo(np.float64).tiny
    found: Floats = scale * np.log(np.maximum(statistics(predicted), tiny) / np.maximum(statistics(measured), tiny))
    return found


def fit(
    cells: Sequence[Cell],
    held_out: Sequence[Cell] = (),
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

    start   all of it that is not free, and where the free terms start; guessed from the latencies where it has none
    delay   ns from client to engine, the start if it is free
    free    which of its terms and `delay` to fit; without any the core, the delay of clients, and what more helps
    within  the lowest and highest value of some terms, ns (`calibrate.fit.prior`)
    first   most requests to use of each run; of those, the ones that ended before the last of them was sent
    starts  points to start from, all but one drawn around the first
    draws   bootstrap samples

    Raises ValueError for runs with fewer than 20 requests to compare, and for terms that do not exist.
    """
    begun = time.process_time()
    for cell in cells:
        used = len(cell.settled(min(first, cell.requests)))
        if used < FEWEST or not cell.known:
            raise ValueError(f"{cell.name}: {used} requests with a latency to compare; expected at least {FEWEST}")
    guessed = guess([cell.measured for cell in cells])
    form = start or Roofline()
    chosen = free_terms(cells, free, form)
    begin = {
        name: getattr(form, name) or (getattr(guessed, OF_SUMS.get(name, name)) if name in chosen else 0.0)
        for name in terms_of(form)
    }
    begin[DELAY] = float(delay) or (FIRST_DELAY if DELAY in chosen else 0.0)
    problem = Problem(cells, first, begin, chosen, within or {}, form)
    point, losses = search(problem, starts, seed, progress)
    progress("refining")
    point = problem.solve(point, ROUNDS)
    further = () if free else tuple(name for name in FURTHER if not begin[name])
    problem, point = grown(problem, point, guessed, further, progress)
    slope = problem.slope(point)
    terms = problem.terms(point)
    cost, away = priced(form, terms), round(terms[DELAY])
    identified = identify(problem.free, slope, problem.ratios(point))
    again = noise(cells, first)
    intervals = bootstrap(problem, point, slope, again, draws, seed)
    spent = time.process_time() - begun
    progress("predicting what was kept back")
    errors = [of_cell(cell, "fitted", cost, away, size) for cell, size in zip(cells, problem.sizes, strict=True)]
    errors += [of_cell(cell, "held out", cost, away, 0) for cell in held_out]
    left_out = tuple(name for name in further if name not in problem.free)
    told = pd.concat(errors, ignore_index=True)
    return LogFit(cost, away, problem.free, left_out, intervals, again, identified, told, tuple(losses), spent)


def grown(
    problem: Problem, point: Floats, guessed: Roofline, further: Sequence[str], progress: Callable[[str], None]
) -> tuple[Problem, Floats]:
    """The problem with those of the further terms without which the runs are clearly met worse, and its solution."""
    left = list(further)
    while left:
        slope = problem.slope(point)
        gains = {name: problem.gain(point, slope, name, getattr(guessed, name)) for name in left}
        name = max(gains, key=lambda each: gains[each])
        gain, size = gains[name]
        if gain < BETTER / 2 or not size:
            break
        progress(f"trying {name}")
        left.remove(name)
        start, free = problem.start | {name: size}, (*problem.free, name)
        more = Problem(problem.cells, max(problem.sizes), start, free, problem.within, problem.form)
        there = more.solve(np.append(point, 0.0), ROUNDS)
        if more.rms(there) < problem.rms(point) - BETTER:
            problem, point = more, there
    return problem, point


def terms_of(form: Curve) -> tuple[str, ...]:
    """The terms that can be fitted of a cost of this form."""
    return tuple(name for name in (*TERMS, *OF_SUMS) if hasattr(form, name))


def free_terms(cells: Sequence[Cell], free: Sequence[str], form: Curve) -> tuple[str, ...]:
    """The terms to fit. Raises ValueError for one that the form has not."""
    known = (*terms_of(form), DELAY)
    chosen = free or ((*CORE, DELAY) if any(cell.at_client for cell in cells) else CORE)
    for name in chosen:
        if name not in known:
            raise ValueError(f"{name} is no term; expected some of {', '.join(known)}")
    return tuple(name for name in known if name in chosen)


def search(problem: Problem, starts: int, seed: int, progress: Callable[[str], None]) -> tuple[Floats, list[float]]:
    """A good point on half of the requests, and the losses of all that were tried from, the best first.

    A draw of points far around the start is thinned to the best few by a look at each.
    """
    lot = np.random.default_rng(seed)
    half = max(FEWEST * 10, problem.first // 2)
    few = Problem(problem.cells, half, problem.start, problem.free, problem.within, problem.form)
    points = [np.zeros(len(problem.free))]
    points += [lot.normal(0.0, SPREAD, len(problem.free)) for _ in range(LOOKS if starts > 1 else 0)]
    points = [np.clip(point, few.low, few.high) for point in points]
    points = sorted(points, key=few.loss)[:starts]
    found = []
    for number, point in enumerate(points, 1):
        progress(f"start {number} of {len(points)}")
        best = few.solve(point, TRIALS)
        found.append((few.loss(best), best))
    found.sort(key=lambda each: each[0])
    return found[0][1], [lowest for lowest, _ in found]


def bootstrap(
    problem: Problem, point: Floats, slope: Floats, again: Noise, draws: int, seed: int
) -> dict[str, tuple[float, float]]:
    """Intervals of the free terms over samples of blocks of consecutive requests, drawn alike for both sides.

    What another run of the same setting might have measured is drawn besides (`calibrate.fit.repeats`). Each sample
    is answered by one Gauss-Newton step from the solution: what the statistics would have pulled it to, within what
    is possible.
    """
    lot = np.random.default_rng(seed)
    pairs = problem.pairs(point)
    metrics = [(place, name) for place, cell in enumerate(problem.cells) for name in cell.known]
    pulled = np.vstack([slope, PULL * np.eye(len(point))])
    answer = np.linalg.pinv(pulled)
    blocks = [np.arange(len(found)) * BLOCKS // max(len(found), 1) for _, found, _ in pairs]
    moved = []
    here = problem.residuals(point)
    for _ in range(draws):
        taken = lot.integers(0, BLOCKS, BLOCKS)
        moves = list(again.draws(lot))
        parts = []
        for (weight, found, said), block, (place, name) in zip(pairs, blocks, metrics, strict=True):
            rows = np.concatenate([np.flatnonzero(block == each) for each in taken])
            moved_by = moves[place].get(name, np.zeros(len(STATISTICS)))
            parts.append(log_ratios(weight, found[rows], said[rows]) - weight * SHARES * moved_by)
        there = point - answer @ (np.concatenate([*parts, PULL * point]) - here)
        moved.append(np.clip(there, problem.low, problem.high) - point)
    spread = np.percentile(np.array(moved), (5, 95), axis=0)
    terms = problem.terms(point)
    return {
        name: tuple(float(terms[name] * np.exp(bound)) for bound in spread[:, place])  # type: ignore[misc]
        for place, name in enumerate(problem.free)
    }


def of_cell(cell: Cell, part: str, cost: Curve, delay: Nanoseconds, used: int) -> pd.DataFrame:
    """How well a run is met: the requests used, if any, apart from those that were not."""
    said = cell.predicted(cost, delay)
    taken = cell.settled(used) if used else cell.measured.iloc[:0]
    others = cell.measured[~cell.measured["id"].isin(taken["id"])]
    parts = [compared(taken, said, METRICS).assign(part=part), compared(others, said, METRICS).assign(part="rest")]
    if not used:
        parts[1]["part"] = part
    return pd.concat([found for found in parts if len(found)], ignore_index=True).assign(cell=cell.name)


def priced(form: Curve, terms: Mapping[str, float]) -> Curve:
    """The cost of this form with these terms, ns; `delay` is none of it."""
    return replace(form, **{name: value for name, value in terms.items() if name != DELAY})
