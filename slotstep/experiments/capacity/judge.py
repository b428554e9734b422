"""Whether the runs at one point meet the objectives: yes, no, or not known yet, each with stated confidence.

A mean over runs (of the share that was late, or of a mean latency) is compared with its limit by one-sided
t-bounds: met if the upper bound is within it, missed if the lower one is beyond it. Where the queue of every run
grows a point is missed whatever was measured; where that of some does, the majority decides after the last run.
Pure functions of what the runs measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reports.statistics.intervals import Estimate, mean
from slotstep.experiments.capacity.objective import Objective
from slotstep.experiments.capacity.trial import Trial


@dataclass(frozen=True)
class Judged:
    """An objective at one point. `late` and `value` are over the runs; `met` is None while it is not known."""

    objective: Objective
    late: Estimate | None
    value: Estimate | None
    met: bool | None

    @property
    def strain(self) -> float:
        """How far beyond the limit it may be: the upper bound over what is allowed, at least 0."""
        judged, allowed = (
            (self.value, self.objective.limit) if self.late is None else (self.late, self.objective.allowed)
        )
        assert judged is not None
        return judged.high / allowed if allowed else (math.inf if judged.high > 0 else 0.0)


@dataclass(frozen=True)
class Point:
    """What is known at one value `at` of the knob; `last` if there will be no more runs."""

    at: float
    trials: tuple[Trial, ...]
    judged: tuple[Judged, ...]
    last: bool

    @property
    def unstable(self) -> int:
        """In how many runs the queue grows."""
        return sum(trial.grows is True for trial in self.trials)

    @property
    def stable(self) -> bool | None:
        """Whether the queue does not grow; None while it does in some runs."""
        if self.unstable in (0, len(self.trials)):
            return not self.unstable
        return 2 * self.unstable < len(self.trials) if self.last else None

    @property
    def met(self) -> bool | None:
        """Whether every objective is met and the queue does not grow; None while it is not known."""
        verdicts = [self.stable, *(each.met for each in self.judged)]
        return False if False in verdicts else None if None in verdicts else True

    @property
    def binding(self) -> str | None:
        """What is missed here, by the most."""
        if self.stable is False:
            return "a queue that grows"
        beyond = [each for each in self.judged if not each.met]
        return max(beyond, key=lambda each: each.strain).objective.text if beyond else None

    @property
    def waited(self) -> dict[str, float]:
        """Shares of the time that requests were left waiting, by what for; empty if nobody was."""
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


def judge(
    at: float, trials: Sequence[Trial], objectives: Sequence[Objective], confidence: float, last: bool = True
) -> Point:
    """What the runs at one point say, each objective at this confidence."""
    judged = []
    for place, objective in enumerate(objectives):
        measured = [trial.measured[place] for trial in trials]
        late = estimate([each.late for each in measured], confidence)
        value = estimate([each.value for each in measured], confidence)
        compared, limit = (value, objective.limit) if late is None else (late, objective.allowed)
        assert compared is not None
        assert limit is not None
        judged.append(Judged(objective, late, value, verdict(compared, limit)))
    return Point(at, tuple(trials), tuple(judged), last)


def estimate(values: Sequence[float | None], confidence: float) -> Estimate | None:
    """The mean with the bounds that it is within on either side at this confidence; None without values."""
    known = [value for value in values if value is not None]
    return mean(known, 2 * confidence - 1) if known else None


def verdict(found: Estimate, limit: float) -> bool | None:
    """Whether a mean is within its limit."""
    if math.isinf(found.value):
        return False
    if found.high <= limit:
        return True
    return False if found.low > limit else None
