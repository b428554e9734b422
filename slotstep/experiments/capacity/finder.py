"""The search for one variant of a question: which values are tried, with how many runs.

All values use the same seeds, and runs of a seed the same draws (common random numbers), so that two values differ by
the value and not by the draws. Probes, a run a value, say where the search begins (`probe`). The answer rests on
verdicts: a value has runs until it is met or missed at the stated confidence, until it will hardly be met any more,
or until it has as many runs as the question allows.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sim.cost.forms import StepCost
from slotstep.experiments.capacity import fluid, search
from slotstep.experiments.capacity.judge import GIVEN_UP, Point, judge
from slotstep.experiments.capacity.probe import probe, promising
from slotstep.experiments.capacity.question import Question, Variant
from slotstep.experiments.capacity.trial import Trial, attempt
from slotstep.experiments.capacity.workers import Workers
from slotstep.experiments.sweeps.work import read_once
from slotstep.runs.resolution import resolved, with_transforms
from slotstep.runs.workload import load

AROUND = (0.5, 0.8, 1.15)
"""Points that the curve has in any case, relative to the knee: below it with RUNS_AROUND runs."""
RUNS_AROUND = 2
BEYOND = (1.3, 1.6, 2.0)
"""Further points, relative to the knee, as long as none is missed with confidence."""
NEAR = 0.06
"""Relative distance below which a point of the curve stands for another."""


@dataclass(frozen=True)
class Standing:
    """What a search knows: the values `tried` now, and the nearest known to meet the objectives and not to.

    runs  how many there will be at those
    """

    tried: tuple[float, ...]
    runs: int
    met: float | None
    missed: float | None


@dataclass
class Finder:
    """Evaluates values of one variant; `progress` is called when runs begin and when they have ended.

    stretches  length of the blocks of a resampled workload, None for one that draws
    cost       a draw of the step cost in place of the scenario's
    """

    variant: Variant
    question: Question
    stretches: str | None
    workers: Workers
    progress: Callable[[Standing], None]
    cost: StepCost | None = None
    trials: dict[float, list[Trial]] = field(default_factory=dict)
    met: float | None = None
    missed: float | None = None

    # ------------------------------------------------------------------ the search

    def bracket(self, above: float | None = None) -> search.Bracket:
        """The knee, and the first value beyond it; `above` is a rate thought to be above it, None if none is known.

        Raises BadInput for a rate of requests that all arrive at once.
        """
        if self.question.find == "replicas":
            return search.fewest(self.good, self.question.most_replicas)
        start = search.estimate(self.promising, above or self.fluid_limit())
        return search.largest(self.good, start, self.question.tolerance)

    def fluid_limit(self) -> float:
        """The rate that the engines bear in the fluid limit. Raises BadInput if all requests arrive at once."""
        scenario = self.variant.scenario
        requests = load(scenario, read_once).requests
        if requests[-1].arrival == requests[0].arrival:
            with scenario.blamed("workload: "):
                raise ValueError("its requests all come at once; expected a rate to vary")
        return fluid.rate(scenario, requests, self.cost)

    def promising(self, values: Sequence[float]) -> list[bool]:
        """Whether the first run at each of these values misses at most a part of what is allowed."""
        tried = [rounded(at) for at in values]
        self.progress(self.standing(tuple(tried), 1))
        found = self.workers.call(probe, (self.call(at, 0) for at in tried))
        self.trials |= {at: [trial] for at, trial in zip(tried, found, strict=True) if trial is not None}
        return [promising(trial, self.question.objectives) for trial in found]

    def good(self, at: float) -> bool:
        """Whether a value is known to meet all objectives; an undecided one does not count."""
        at = rounded(at)
        begun = len(self.trials.get(at, ()))
        for upto in [begun, *self.stages] if begun else self.stages:
            self.run([at], upto)
            found = self.point(at)
            if found.met is not None or found.prospect(self.stages, self.question.confidence) <= GIVEN_UP:
                break
        met = self.point(at).met is True
        self.met, self.missed = (at, self.missed) if met else (self.met, at)
        self.progress(self.standing((), 0))
        return met

    @property
    def stages(self) -> list[int]:
        """The numbers of runs after which the verdict is evaluated."""
        most = self.question.seeds
        return sorted({max(most // 4, 2), max(most // 2, 2), most})

    def look_around(self, knee: float) -> None:
        """Have runs at values around the knee, where the curve has none near by."""
        wanted = [knee * factor for factor in AROUND]
        missing = [near for near in wanted if all(abs(at / near - 1) > NEAR for at in self.shown())]
        self.run([at for at in missing if at < knee], RUNS_AROUND)
        self.run([at for at in missing if at > knee], self.stages[0])
        for factor in BEYOND:
            if any(at > knee and self.point(at).met is False for at in self.shown()):
                break
            self.good(factor * knee)

    # ------------------------------------------------------------------ the values

    def point(self, at: float) -> Point:
        """The verdict at a value that has been tried."""
        question = self.question
        return judge(at, self.trials[rounded(at)], question.objectives, question.confidence, question.seeds)

    def shown(self) -> list[float]:
        """The values that have been tried, in order, but for probes."""
        return sorted(at for at, trials in self.trials.items() if len(trials) > 1)

    def curve(self) -> tuple[Point, ...]:
        """The points at all values but those of probes, in order."""
        whole = self.question.find == "replicas"
        return tuple(self.point(int(at) if whole else at) for at in self.shown())

    def run(self, values: Sequence[float], upto: int) -> None:
        """Have `upto` runs at each of these values, the missing ones at once."""
        tried = [rounded(at) for at in values]
        missing = [(at, seed) for at in tried for seed in range(len(self.trials.get(at, ())), upto)]
        if not missing:
            return
        self.progress(self.standing(tuple(tried), upto))
        calls = [self.call(value, seed) for value, seed in missing]
        for (value, _), trial in zip(missing, self.workers.call(attempt, calls), strict=True):
            self.trials.setdefault(value, []).append(trial)

    def call(self, value: float, run: int) -> tuple[Any, ...]:
        """The arguments of a run at a value, the first being number 0."""
        variant, question = self.variant, self.question
        settings = copy.deepcopy(resolved(variant.scenario))
        again = [] if self.stretches is None else [{"resample": self.stretches}]
        settings["workload"] = with_transforms(settings["workload"], again)
        rate: float | None = value
        if question.find == "replicas":
            settings["cluster"]["replicas"], rate = int(value), None
        return settings, variant.scenario.seed + run, question.objectives, self.cost, rate, self.workers.name

    def standing(self, tried: tuple[float, ...], runs: int) -> Standing:
        """What is known, with the values that are tried now."""
        return Standing(tried, runs, self.met, self.missed)


def rounded(value: float) -> float:
    """A value with six digits, as it is simulated and reported."""
    return float(f"{value:.6g}")
