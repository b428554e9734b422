"""The runs of a bundle, run again and compared with what they gave."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from reports.checks.outcome import Broken, Compared, Outcome
from slotstep.experiments.bundles import environment, inputs
from slotstep.experiments.bundles.bundle import Bundle, BundledRun, own_code
from slotstep.experiments.checks.expected import Tolerance
from slotstep.experiments.metric_path import direction, leaves
from slotstep.experiments.sweeps.backends import compute
from slotstep.runs.loading import parse
from slotstep.runs.simulation import run as simulate

NOT_COMPARED = ("kernel",)
"""Keys of a summary that say how a run was computed."""


def reproduce(
    bundle: Bundle,
    folder: Path,
    within: Tolerance | None = None,
    jobs: int | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> list[Outcome]:
    """The outcome of each run, in order: every value of its summary against the recorded one.

    folder    where the inputs are
    within    what numbers may differ by; nothing if None
    jobs      runs at once; all cores if None
    progress  called with the number of runs that have ended

    What differs in the environment and in own code is named with the runs that differ. A run that fails is broken.
    Raises BadInput for an input that is not there.
    """
    places = inputs.found(bundle.inputs, folder)
    calls = ((place, inputs.replaced(run.settings, places)) for place, run in enumerate(bundle.runs))
    again: dict[int, Mapping[str, Any] | str] = {}
    for place, found in compute(summary_of, calls, "local", None, jobs):
        again[place] = found
        progress(len(again))
    names = {place: name for name, place in places.items()}
    changed = [*changes(bundle, places)]
    return [outcome(run, again[place], names, within, changed) for place, run in enumerate(bundle.runs)]


def summary_of(place: int, settings: Mapping[str, Any]) -> tuple[int, Mapping[str, Any] | str]:
    """Simulate a resolved scenario: its summary, or the reason why it could not be run."""
    try:
        return place, json.loads(json.dumps(simulate(parse(settings, "scenario")).summary))
    except Exception as error:
        return place, f"{type(error).__name__}: {' '.join(str(error).split())}"


def changes(bundle: Bundle, places: Mapping[str, str]) -> Iterator[str]:
    """What differs from when the bundle was written: the environment, and own code, or why that cannot be loaded."""
    yield from environment.differences(bundle.environment, environment.environment())
    try:
        now = own_code(inputs.replaced(run.settings, places) for run in bundle.runs)
    except ValueError as error:
        yield str(error)
        return
    for file in dict.fromkeys([*bundle.code, *now]):
        before, after = bundle.code.get(file), now.get(file)
        if before != after:
            yield f"{file}: {(before or 'absent')[:16]} -> {(after or 'absent')[:16]}"


def outcome(
    run: BundledRun,
    again: Mapping[str, Any] | str,
    names: Mapping[str, str],
    within: Tolerance | None,
    changed: list[str],
) -> Outcome:
    """One run compared; `names` has the inputs' names in the bundle by their paths here."""
    if isinstance(again, str):
        return Outcome(run.name, (), Broken("; ".join([again, *changed])))
    before, now = dict(leaves(run.summary)), dict(leaves(inputs.replaced(again, names)))
    compared = [
        compare(name, before.get(name), now.get(name), within)
        for name in dict.fromkeys([*before, *now])
        if name not in NOT_COMPARED
    ]
    differs = any(not one.same for one in compared)
    return Outcome(run.name, compared, changed=changed if differs else [])


def compare(name: str, before: Any, now: Any, within: Tolerance | None) -> Compared:
    """One value compared with the recorded one."""
    allowed, same = "exact", before == now
    if within is not None and isinstance(before, float) and isinstance(now, int | float):
        allowed, same = str(within), within.allows(before, now)
    return Compared(name, before, now, allowed, same, direction(name))
