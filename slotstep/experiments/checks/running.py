"""The checks of a baseline run, each compared with what is recorded of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reports.checks.outcome import Broken, Compared, Outcome
from sim.accounting.metric import Better
from slotstep.experiments.checks import scenarios
from slotstep.experiments.checks.baseline import Baseline, Check
from slotstep.experiments.checks.expected import Expected
from slotstep.experiments.metric_path import Value, direction, metric
from slotstep.runs.loading import load
from slotstep.runs.resolution import with_policy
from slotstep.runs.simulation import run
from slotstep.scenario.schema import Scenario


@dataclass(frozen=True)
class Checked:
    """A check that was run: its outcome, and the scenario as it is recorded; {} if the check is broken."""

    outcome: Outcome
    scenario: Mapping[str, Any]


def run_checks(
    baseline: Baseline, folder: Path, recorded: Mapping[str, Mapping[str, Any]], settings: Sequence[str] = ()
) -> list[Checked]:
    """Each check run, in order; scenario files are relative to `folder`.

    recorded  the recorded scenarios, by check
    settings  overrides of every scenario

    A check that cannot be run is `Broken` and does not stop the others.
    """
    return [checked(name, check, folder, recorded.get(name), settings) for name, check in baseline.checks.items()]


def checked(
    name: str, check: Check, folder: Path, before: Mapping[str, Any] | None, settings: Sequence[str]
) -> Checked:
    """One check run."""
    try:
        scenario = scenario_of(check, folder, settings)
        summary = run(scenario).summary
        more = scenario.metrics or ()
        compared = tuple(
            compare(one, given, metric(summary, one), direction(one, more)) for one, given in check.metrics.items()
        )
        now = scenarios.described(scenario)
    except (ValueError, OSError) as error:
        return Checked(Outcome(name, (), Broken(" ".join(str(error).split()))), {})
    changed = None if before is None else scenarios.changes(before, now)
    return Checked(Outcome(name, compared, changed=changed), now)


def scenario_of(check: Check, folder: Path, settings: Sequence[str]) -> Scenario:
    """The scenario of a check. Raises BadInput for an invalid one."""
    scenario = load(folder / check.scenario, [*check.set, *settings])
    return scenario if check.policy is None else with_policy(scenario, check.policy)


def compare(name: str, given: Expected, now: Value, better: Better) -> Compared:
    """One metric compared with what is expected of it.

    Raises ValueError for the tolerance `worse` of a metric of which no direction is better.
    """
    if given.worse is not None and not better:
        raise ValueError(f"{name}: neither more nor less is better; expected within, at_least or at_most, not worse")
    same, improved = verdict(given, now, better)
    return Compared(name, given.value, now, given.allowed, same, better, improved, given.limited)


def verdict(given: Expected, now: Value, better: Better) -> tuple[bool, bool]:
    """Whether a value is allowed, and whether it is better by more than it may be worse."""
    before = given.value
    if given.limited:
        low, high = given.at_least, given.at_most
        if not isinstance(now, int | float):
            return False, False
        return (low is None or now >= low) and (high is None or now <= high), False
    tolerance = given.within or given.worse
    if tolerance is None or not isinstance(before, int | float) or not isinstance(now, int | float):
        return before == now and isinstance(before, str) == isinstance(now, str), False
    same = tolerance.allows(before, now)
    improved = given.worse is not None and not same and (now > before) == (better == "higher")
    return same or improved, improved
