"""One run of a sweep on any worker: from a resolved scenario to its row.

Each worker keeps the last few traces in memory.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from slotstep.experiments.sweeps import identity, row
from slotstep.runs import workload
from slotstep.runs.loading import parse
from slotstep.runs.simulation import run as simulate
from slotstep.runs.workload import LoadedWorkload
from slotstep.scenario.workload import TRACE_OPTIONS

TRACES = 2
"""How many traces a worker keeps in memory."""


def execute(run: str, axes: Mapping[str, Any], settings: Mapping[str, Any], code: str) -> row.Row:
    """Simulate a resolved scenario and return its row; an error gives the row of a failed run.

    Raises RuntimeError if the worker's code is not `code`.
    """
    if identity.code() != code:
        raise RuntimeError(f"a worker has slotstep {identity.code()}, this process {code}; expected the same code")
    try:
        scenario = parse(settings, "scenario")
        result = simulate(scenario, workload=workload.load(scenario, read_once))
        return row.ended(run, axes, settings, result.summary)
    except Exception as error:
        return row.failed(run, axes, settings, f"{type(error).__name__}: {' '.join(str(error).split())}")


def read_once(given: Mapping[str, Any]) -> LoadedWorkload:
    """A trace as `workload.replayed` reads it, cached by the content of its file."""
    contents = [identity.digest(Path(file)) for kind, file in given.items() if kind not in TRACE_OPTIONS]
    return _read(json.dumps(given, sort_keys=True), *contents)


@lru_cache(TRACES)
def _read(given: str, *_: str) -> LoadedWorkload:
    return workload.replayed(json.loads(given))
