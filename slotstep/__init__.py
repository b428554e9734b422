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
    from slotstep.engine import compare
    from slotstep.replications import replicate
    from slotstep.result import Result
    from slotstep.scenario import Scenario, load, parse
    from slotstep.sweeps.grid import load as load_grid
    from slotstep.sweeps.sweep import sweep
    from traces.errors import BadInput

__all__ = ["BadInput", "Result", "Scenario", "compare", "load", "load_grid", "parse", "replicate", "sweep"]

HOMES = {
    "BadInput": "traces.errors",
    "Result": "slotstep.result",
    "Scenario": "slotstep.scenario",
    "compare": "slotstep.engine",
    "load": "slotstep.scenario",
    "load_grid": "slotstep.sweeps.grid",
    "parse": "slotstep.scenario",
    "replicate": "slotstep.replications",
    "sweep": "slotstep.sweeps.sweep",
}


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
