"""The verdict at one point: objectives met, missed, or undecided, each at a stated confidence.

A mean over runs (of the share of late requests, or of a mean latency) is compared with its limit by one-sided
t-bounds: met if the upper bound is within it, missed if the lower bound is beyond it. If the queue of every run grows
the point is missed; if that of some runs grows, the majority decides after the last run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scipy import stats

from reports.statistics.intervals import Estimate, mean
from slotstep.experiments.capacity.objective import Objective
from slotstep.experiments.capacity.trial import Trial

FEWEST = 2
"""Runs without which whether the queue grows is not decided."""
GIVEN_UP = 0.05
"""A point has no further runs once it would be met in the end with at most this probability, by its runs so far."""


@dataclass(frozen=True)
class Judged:
    """One objective at one point. `late` and `value` are over the runs; `met` is None while undecided."""

    objective: Objective
    late: Estimate | None
    value: Estimate | None
    met: bool | None

    @property
    def strain(self) -> float:
        """The upper bound relative to what is allowed, at least 0."""
        judged, allowed = (
            (self.value, self.objective.limit) if self.late is None else (self.late, self.objective.allowed)
        )
        assert judged is not None
        return judged.high / allowed if allowed else (math.inf if judged.high > 0 else 0.0)

    def prospect(self, stages: Sequence[int], confidence: float) -> float:
        """The probability that it is met after one of the `stages`, numbers of runs, by its mean m and deviation s.

        After n runs it is met if their mean is at most limit - t s / sqrt(n). For runs 1 to k being known, the mean
        of the others is predicted by Student's t with k - 1 degrees of freedom around m, with the deviation
        s sqrt(1 / k + 1 / (n - k)) (Hahn and Meeker 1991, Statistical Intervals, 4.7). It is 0 once the sum of the
        runs is above n limits: shares and latencies are at least 0, and an upper bound is not below its mean.
        """
        judged, limit = (
            (self.value, self.objective.limit) if self.late is None else (self.late, self.objective.allowed)
        )
        assert judged is not None
        assert limit is not None
        runs, middle = judged.n, judged.value
        if self.met is False or runs * middle > max(stages) * limit:
            return 0.0
        if self.met or runs < FEWEST:
            return 1.0
        root = math.sqrt(runs)
        deviation = (judged.high - middle) / float(stats.t.ppf(confidence, runs - 1)) * root
        chances = [0.0]
        for total in stages:
            if total > runs:
                reach = float(stats.t.ppf(confidence, total - 1)) * deviation / math.sqrt(total)
                needed = (total * (limit - reach) - runs * middle) / (total - runs)
                spread = deviation * math.sqrt(1 / runs + 1 / (total - runs))
                chances.append(float(stats.t.cdf((needed - middle) / spread, runs - 1)) if needed >= 0 else 0.0)
        return max(chances)


@dataclass(frozen=True)
class Point:
    """The verdict at one value `at`; `last` if there will be no more runs."""

    at: float
    trials: tuple[Trial, ...]
    judged: tuple[Judged, ...]
    last: bool

    @property
    def unstable(self) -> int:
        """The number of runs whose queue grows."""
        return sum(trial.grows is True for trial in self.trials)

    @property
    def stable(self) -> bool | None:
        """Whether the queue does not grow; None while undecided."""
        if len(self.trials) < FEWEST and not self.last:
            return None
        if self.unstable in (0, len(self.trials)):
            return not self.unstable
        return 2 * self.unstable < len(self.trials) if self.last else None

    @property
    def met(self) -> bool | None:
        """Whether every objective is met and the queue does not grow; None while undecided."""
        verdicts = [self.stable, *(each.met for each in self.judged)]
        return False if False in verdicts else None if None in verdicts else True

    @property
    def binding(self) -> str | None:
        """The objective that is missed by the most."""
        if self.stable is False:
            return "a queue that grows"
        beyond = [each for each in self.judged if not each.met]
        return max(beyond, key=lambda each: each.strain).objective.text if beyond else None

    def prospect(self, stages: Sequence[int], confidence: float) -> float:
        """The probability that every objective will be met after one of the `stages`, by the runs so far."""
        return min((each.prospect(stages, confidence) for each in self.judged), default=1.0)

    @property
    def waited(self) -> dict[str, float]:
        """Shares of the request-seconds of waiting, by what requests waited for; empty without waiting."""
        names = self.trials[0].waited
        total = {name: sum(trial.waited[name] for trial in self.trials) for name in names}
        whole = sum(total.values())
        return {name: part / whole for name, part in total.items()} if whole else {}

    def average(self, *path: str) -> float:
        """The mean over the runs of a number of their summaries."""
        return math.fsum(number(trial.summary, path) for trial in self.trials) / len(self.trials)


def number(summary: Mapping[str, Any], path: Sequence[str]) -> float:
    """A number in a summary."""
    here: Any = summary
    for part in path:
        here = here[part]
    return float(here)


def judge(at: float, trials: Sequence[Trial], objectives: Sequence[Objective], confidence: float, most: int) -> Point:
    """The verdict of the runs at one point, of at most `most`, each objective at this confidence."""
    judged = []
    for place, objective in enumerate(objectives):
        measured = [trial.measured[place] for trial in trials]
        late = estimate([each.late for each in measured], confidence)
        value = estimate([each.value for each in measured], confidence)
        compared, limit = (value, objective.limit) if late is None else (late, objective.allowed)
        assert compared is not None
        assert limit is not None
        judged.append(Judged(objective, late, value, verdict(compared, limit)))
    return Point(at, tuple(trials), tuple(judged), len(trials) == most)


def estimate(values: Sequence[float | None], confidence: float) -> Estimate | None:
    """The mean with one-sided bounds at this confidence; None without values."""
    known = [value for value in values if value is not None]
    return mean(known, 2 * confidence - 1) if known else None


def verdict(found: Estimate, limit: float) -> bool | None:
    """Whether a mean is within its limit; None if undecided."""
    if math.isinf(found.value):
        return False
    if found.high <= limit:
        return True
    return False if found.low > limit else None
