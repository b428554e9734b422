"""Several policies over several seeds with common random numbers: in each seed all get the same requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from reports.statistics.replications import LATENCIES, Replication, Replications, metrics_of_the_run
from reports.text.metric_comparison import value_at
from slotstep.experiments.sweeps.backends import compute
from slotstep.experiments.sweeps.work import read_once
from slotstep.runs import size_limits
from slotstep.runs.loading import parse
from slotstep.runs.resolution import resolved, with_policy
from slotstep.runs.result import Result
from slotstep.runs.simulation import run
from slotstep.runs.workload import load

if TYPE_CHECKING:
    from slotstep.scenario.schema import Scenario


def replicate(
    scenario: Scenario,
    policies: Sequence[str],
    seeds: int,
    jobs: int | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Replications:
    """Run each policy on `seeds` seeds, from the scenario's seed on.

    jobs      processes; all cores if None
    progress  called with the number of seeds that have ended

    Raises BadInput for an unknown policy, and for a scenario in which nothing is random: then all seeds give one run.
    """
    scenarios = [with_policy(scenario, name) for name in policies]
    size_limits.check_runs("seeds", seeds * len(policies), scenario.allow_large)
    numbers = tuple(range(scenario.seed, scenario.seed + seeds))
    settings = [resolved(each) for each in scenarios]
    found: dict[int, list[Replication]] = {}
    logs: set[tuple[str, ...]] = set()
    for seed, runs, digests in compute(on_seed, ((settings, seed) for seed in numbers), "local", None, jobs):
        found[seed] = runs
        logs.add(digests)
        progress(len(found))
    if seeds > 1 and len(logs) == 1:
        with scenario.blamed("workload: "):
            raise ValueError(
                "nothing in it is drawn, nor by policy, router or clients, so every seed gives the same requests; "
                "expected laws, or a transform that draws, such as resample: 60s"
            )
    return Replications(
        numbers,
        {name: [found[seed][place] for seed in numbers] for place, name in enumerate(policies)},
        more=scenario.metrics or (),
    )


def drawn(scenario: Scenario, seed: int) -> list[tuple[int, int, int]]:
    """The arrival, prompt and output of each request of a seed."""
    made = load(scenario.model_copy(update={"seed": seed}), read_once)
    return [(request.arrival, request.prompt, request.output) for request in made.requests]


def on_seed(settings: Sequence[Mapping[str, Any]], seed: int) -> tuple[int, list[Replication], tuple[str, ...]]:
    """Replication every scenario on the requests of one seed: the measures, and the digests of the logs."""
    scenarios = [parse({**each, "seed": seed}) for each in settings]
    workload = load(scenarios[0], read_once)
    results = [run(each, workload=workload) for each in scenarios]
    return seed, [measured(each) for each in results], tuple(each.summary["log_sha256"] for each in results)


def measured(result: Result) -> Replication:
    """The measures of a run, request by request in the order of arrival."""
    frame = result.requests.sort_values("queued_ns", kind="stable")
    status = frame["status"].to_numpy()
    over = status != "finished"
    latencies = {}
    for name in LATENCIES:
        values = frame[name].to_numpy(float, copy=True)
        values[np.isnan(values) & over] = np.inf
        latencies[name] = values
    summary = result.summary
    of_the_run = metrics_of_the_run(tuple(summary.get("metrics", ())))
    whole = {metric.key: value_at(summary, path) for path, metric in of_the_run.items()}
    whole["client_wait_s"] = summary["client_wait_s"]["max"]
    return Replication(latencies, whole, result.queue_grows)
