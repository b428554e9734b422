"""The simulation of `slotstep run` and `compare`, with a progress bar and remarks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from slotstep.cli.output import say

if TYPE_CHECKING:
    from slotstep.runs.result import Result
    from slotstep.scenario.schema import Scenario


def simulate(scenarios: Sequence[Scenario], folders: Sequence[Path]) -> list[Result]:
    """Run scenarios that differ in policy on the same requests; first checks that `folders` can be written."""
    from slotstep.cli.progress import Meter
    from slotstep.runs.result import prepare
    from slotstep.runs.simulation import run
    from slotstep.runs.workload import load

    workload = load(scenarios[0])
    for remark in workload.remarks:
        say(remark)
    for folder in folders:
        prepare(folder)
    results = []
    for scenario in scenarios:
        with Meter(scenario.policy.name, len(workload.requests)) as meter:
            results.append(run(scenario, workload=workload, progress=meter))
    for remark in dict.fromkeys(line for result in results for line in result.beyond_the_end):
        say(remark)
    return results


def bundle_runs(path: Path, results: Sequence[Result]) -> None:
    """Write runs into a bundle, each by the name of its policy, and say so."""
    from slotstep.experiments.bundles.bundle import BundledRun, write
    from slotstep.runs.resolution import resolved

    runs = [BundledRun(each.policy, resolved(each.scenario), each.summary) for each in results]
    say(f"written to {write(path, runs)}")
