"""Running a baseline's scenarios and comparing what they give with what is recorded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reports.text.checks import Broken, Compared, Outcome
from slotstep.experiments.baseline import Baseline, Check, Expected
from slotstep.experiments.metric_path import Value, metric
from slotstep.runs.loading import load
from slotstep.runs.resolution import with_policy
from slotstep.runs.simulation import run


def outcomes(baseline: Baseline, folder: Path, settings: Sequence[str] = ()) -> list[Outcome]:
    """What became of each check, in order; scenario files are relative to `folder`.

    `settings` are overrides of every scenario. A check that cannot be run is `Broken`, and does not stop others.
    """
    return [outcome(name, check, folder, settings) for name, check in baseline.checks.items()]


def outcome(name: str, check: Check, folder: Path, settings: Sequence[str]) -> Outcome:
    """What became of one check."""
    try:
        scenario = load(folder / check.scenario, [*check.set, *settings])
        if check.policy is not None:
            scenario = with_policy(scenario, check.policy)
        summary = run(scenario).summary
        found = {one: metric(summary, one) for one in check.metrics}
    except (ValueError, OSError) as error:
        return Outcome(name, (), Broken(" ".join(str(error).split())))
    return Outcome(name, tuple(compared(one, check.metrics[one], now) for one, now in found.items()))


def compared(name: str, expected: Expected, now: Value) -> Compared:
    """One metric against what is recorded of it."""
    recorded: Any = expected.value
    same = recorded == now and isinstance(recorded, str) == isinstance(now, str)
    if expected.within is not None and isinstance(now, int | float):
        same = expected.within.allows(recorded, now)
    return Compared(name, recorded, now, str(expected.within) if expected.within else "exact", same)
