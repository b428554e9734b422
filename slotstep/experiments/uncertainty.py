"""A scenario under draws of its step cost: intervals of the summary's metrics. All runs have the same requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from reports.latency_origin import BOTH
from sim.cost.scaled import Scaled
from slotstep.experiments.sweeps.backends import compute
from slotstep.experiments.sweeps.work import read_once
from slotstep.runs import size_limits, uncertainty
from slotstep.runs.loading import parse
from slotstep.runs.resolution import resolved
from slotstep.runs.simulation import run
from slotstep.runs.workload import load

if TYPE_CHECKING:
    from slotstep.scenario.schema import Scenario

KEPT = ("makespan_s", "occupancy", "goodput_per_s", "preemptions", "attainment", "rates", *BOTH, "measured")
LOW, HIGH = 0.05, 0.95
FEWEST = 10


def intervals(
    scenario: Scenario, count: int, jobs: int | None = None, progress: Callable[[int], None] = lambda _: None
) -> dict[str, Any]:
    """5th and 95th percentile and median of each metric over `count` draws of the cost.

    metrics   by the keys of the summary: `low`, `median` and `high` in place of each number
    medians   the factors of the error model around which steps are drawn
    growing   in how many of the draws the queue grows; None for clients that react

    Raises BadInput for fewer than FEWEST draws, and as `slotstep.runs.uncertainty.of`.
    """
    with scenario.blamed("--uncertainty: "):
        if count < FEWEST:
            raise ValueError(f"found {count}; expected at least {FEWEST} draws")
    size_limits.check_runs("uncertainty", count, scenario.allow_large)
    stated, settings = uncertainty.of(scenario), resolved(scenario)
    calls = ((settings, cost) for cost in uncertainty.drawn(scenario, count))
    found = []
    for result in compute(under, calls, "local", None, jobs):
        found.append(result)
        progress(len(found))
    names = [name for name in found[0][0] if all(name in numbers for numbers, _ in found)]
    metrics: dict[str, Any] = {}
    for name in names:
        values = [numbers[name] for numbers, _ in found]
        low, median, high = np.quantile(values, (LOW, 0.5, HIGH), method="hazen").tolist()
        place = metrics
        for key in name[:-1]:
            place = place.setdefault(key, {})
        place[name[-1]] = {"low": low, "median": median, "high": high}
    grows = [growing for _, growing in found]
    return {
        "draws": count,
        "share": round(HIGH - LOW, 6),
        "source": stated.source,
        "medians": {"decode": stated.decode_median, "prompts": stated.prompts_median},
        "growing": None if None in grows else sum(map(bool, grows)),
        "metrics": metrics,
    }


def under(settings: Mapping[str, Any], cost: Scaled) -> tuple[dict[tuple[str, ...], float], bool | None]:
    """The metrics of a scenario with this cost, by their path in the summary, and whether its queue grows."""
    scenario = parse(settings)
    result = run(scenario, workload=load(scenario, read_once), price=cost)
    return dict(numbers({name: result.summary[name] for name in KEPT})), result.queue_grows


def numbers(found: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], float]]:
    """Every number of a mapping at any depth, with its path."""
    for key, value in found.items():
        if isinstance(value, Mapping):
            yield from numbers(value, (*path, key))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield (*path, key), float(value)
