"""slotstep: what did the slots of an LLM serving engine do, and what would they do under another policy?

    scenario = slotstep.load("chat.yaml")
    result = scenario.run()
    result.summary["occupancy"], result.requests, result.steps
    slotstep.compare(scenario, ["fcfs", "sjf", "fair"])

Everything heavy is imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from slotstep.experiments.replications import replicate
    from slotstep.experiments.sweeps.grid import load as load_grid
    from slotstep.experiments.sweeps.sweep import sweep
    from slotstep.runs.build import compare
    from slotstep.runs.result import Result
    from slotstep.scenario.schema import Scenario, load, parse
    from traces.errors import BadInput

__all__ = ["BadInput", "Result", "Scenario", "compare", "load", "load_grid", "parse", "replicate", "sweep"]

HOMES = {
    "BadInput": "traces.errors",
    "Result": "slotstep.runs.result",
    "Scenario": "slotstep.scenario.schema",
    "compare": "slotstep.runs.build",
    "load": "slotstep.scenario.schema",
    "load_grid": "slotstep.experiments.sweeps.grid",
    "parse": "slotstep.scenario.schema",
    "replicate": "slotstep.experiments.replications",
    "sweep": "slotstep.experiments.sweeps.sweep",
}


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
