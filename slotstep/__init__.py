"""slotstep: what did the slots of an LLM serving engine do, and what would they do under another policy?

    scenario = slotstep.load("chat.yaml")
    result = slotstep.run(scenario)
    result.summary["occupancy"], result.requests, result.steps
    slotstep.compare(scenario, ["fcfs", "sjf", "fair"])

Modules are imported on first use of a name.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from slotstep.experiments.replications import replicate
    from slotstep.experiments.sweeps.grid import load_grid
    from slotstep.experiments.sweeps.sweep import sweep
    from slotstep.runs.loading import load, parse
    from slotstep.runs.resolution import resolved, with_policy
    from slotstep.runs.result import Result
    from slotstep.runs.simulation import compare, run
    from slotstep.scenario.schema import Scenario
    from traces.errors import BadInput

__all__ = [
    "BadInput",
    "Result",
    "Scenario",
    "compare",
    "load",
    "load_grid",
    "parse",
    "replicate",
    "resolved",
    "run",
    "sweep",
    "with_policy",
]

HOMES = {
    "BadInput": "traces.errors",
    "Result": "slotstep.runs.result",
    "Scenario": "slotstep.scenario.schema",
    "compare": "slotstep.runs.simulation",
    "load": "slotstep.runs.loading",
    "load_grid": "slotstep.experiments.sweeps.grid",
    "parse": "slotstep.runs.loading",
    "replicate": "slotstep.experiments.replications",
    "resolved": "slotstep.runs.resolution",
    "run": "slotstep.runs.simulation",
    "sweep": "slotstep.experiments.sweeps.sweep",
    "with_policy": "slotstep.runs.resolution",
}
"""The module of each exported name."""


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
