"""One run of a capacity search: its measure of each objective, queue growth, and what requests waited for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sim.accounting.accounts import Accounts
from sim.accounting.latencies import Floats, pooled_gaps
from sim.accounting.metrics import METRICS
from sim.accounting.objectives import counted
from sim.cost.forms import StepCost
from sim.log.events import EventLog, Reason
from slotstep.experiments.capacity import draws
from slotstep.experiments.capacity.objective import Objective
from slotstep.runs.loading import parse
from slotstep.runs.result import Result
from slotstep.runs.simulation import run
from traces.transforms import operations

if TYPE_CHECKING:
    from slotstep.scenario.schema import Scenario

WAITED_FOR = {
    Reason.NO_DEMAND: "slots",
    Reason.NO_BUDGET: "the token budget",
    Reason.NO_MEMORY: "KV pages",
    Reason.BLOCKED: "KV pages",
    Reason.LIMITED: "the policy's own limits",
}
"""What requests wait for after a plan, by the reason for which its admissions ended."""
AT_CLIENT = "the clients' window"
"""What requests wait for that have not been sent."""


@dataclass(frozen=True)
class Measured:
    """One objective in one run.

    late   the share of requests, or of gaps, that missed it; None for a mean
    value  the statistic in seconds; None for an attainment
    """

    late: float | None
    value: float | None


@dataclass(frozen=True)
class Trial:
    """One run.

    devices  number of GPUs
    waited   request-seconds of waiting, by what requests waited for
    """

    seed: int
    devices: int
    measured: tuple[Measured, ...]
    grows: bool | None
    summary: Mapping[str, Any]
    waited: Mapping[str, float]


KEPT = ("occupancy", "slot_seconds", "requests", "rates", "preemptions")
"""The metrics of a run that the answer reports."""


def attempt(
    settings: Mapping[str, Any],
    seed: int,
    objectives: Sequence[Objective],
    price: StepCost | None = None,
    rate: float | None = None,
    search: str = "",
    watch: Callable[[Scenario, Sequence[Objective], int], Callable[[Sequence[EventLog]], None]] | None = None,
) -> Trial:
    """Run a resolved scenario with this seed.

    price   step cost in place of the scenario's
    rate    mean rate to which the arrivals are stretched, requests a second; None: they stay
    search  name of the search; all its runs of a seed share their draws
    watch   makes what looks at the logs during the run, from the scenario, the objectives and the number of requests
    """
    scenario = parse({**settings, "seed": seed})
    workload = draws.of(scenario, settings["workload"], search)
    if rate is not None:
        workload = replace(workload, requests=operations.rate(workload.requests, rate))
    looks = watch and watch(scenario, objectives, len(workload.requests))
    result = run(scenario, workload=workload, price=price, watch=looks)
    wanted = result.scenario.objectives
    accounts = Accounts(result.logs, wanted.limits or None, result.service_log, wanted.since)
    return Trial(
        seed,
        sum(1 if profile is None else int(profile.content["tensor_parallel"]) for profile in result.profiles),
        tuple(measure(result, accounts, objective) for objective in objectives),
        result.queue_grows,
        {name: METRICS.find(name).of(accounts) for name in KEPT},
        waited(result),
    )


def measure(result: Result, accounts: Accounts, objective: Objective) -> Measured:
    """One objective in a run; a request that should have the latency and never got it is late."""
    if objective.latency is None:
        return Measured(1 - float(METRICS.find("attainment").of(accounts) or 0), None)
    if objective.latency == "itl_s":
        values, weights = pooled_gaps(accounts.injected)
    else:
        latency = counted(objective.latency, result.scenario.objectives.since)
        values = result.requests[latency].to_numpy(float, copy=True)
        values[np.isnan(values) & (result.requests["status"] != "finished").to_numpy()] = np.inf
        values = values[~np.isnan(values)]
        weights = np.ones(len(values), np.int64)
    if not weights.sum():
        return Measured(None if objective.allowed is None else 0.0, 0.0)
    if objective.allowed is None:
        return Measured(None, float(np.average(values, weights=weights)))
    assert objective.limit is not None
    late = float(weights[values > objective.limit].sum() / weights.sum())
    return Measured(late, quantile(values, weights, 1 - objective.allowed))


def quantile(values: Floats, weights: np.ndarray[Any, np.dtype[np.int64]], share: float) -> float:
    """The smallest value that at least this share of the weights does not exceed."""
    order = np.argsort(values, kind="stable")
    reach = np.cumsum(weights[order])
    return float(values[order][min(int(np.searchsorted(reach, share * reach[-1])), len(order) - 1)])


def waited(result: Result) -> dict[str, float]:
    """Request-seconds of waiting after a plan, by what requests waited for.

    If objectives count from when clients wanted to send, also the time that a window held requests back.
    """
    found = dict.fromkeys(WAITED_FOR.values(), 0.0)
    for log in result.logs:
        runs, durations = log.run_table(), log.step_durations()
        if not log.steps:
            continue
        lasted = np.add.reduceat(durations, np.cumsum(runs["steps"]) - runs["steps"])
        for reason, name in WAITED_FOR.items():
            here = runs["reason"] == reason
            found[name] += float(runs["waiting"][here] @ lasted[here]) / 1e9
    clients = result.scenario.clients
    if clients is not None and clients.window and result.scenario.objectives.since == "wanted":
        found[AT_CLIENT] = float((result.requests["client_wait_s"] - clients.delay / 1e9).sum())
    return found
