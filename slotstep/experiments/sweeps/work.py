"""One run of a sweep, wherever it is computed: from a resolved scenario to its row.

A worker reads a trace once, however many of its runs share it.
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
from slotstep.runs.workload import Made
from slotstep.scenario.workload import TRACE_OPTIONS

TRACES = 2
"""How many traces a worker keeps in memory."""


def execute(run: str, axes: Mapping[str, Any], settings: Mapping[str, Any], code: str) -> row.Row:
    """Simulate a resolved scenario and give its row; whatever goes wrong in it is the row of a failed run.

    Raises RuntimeError if the code here is not the `code` that the run was named for.
    """
    if identity.code() != code:
        raise RuntimeError(f"a worker has slotstep {identity.code()}, this process {code}; expected the same code")
    try:
        scenario = parse(settings, "scenario")
        result = simulate(scenario, workload=workload.load(scenario, read_once))
        return row.ended(run, axes, settings, result.summary)
    except Exception as error:
        return row.failed(run, axes, settings, f"{type(error).__name__}: {' '.join(str(error).split())}")


def read_once(given: Mapping[str, Any]) -> Made:
    """A trace as `workload.replayed` reads it, from memory if its file has not changed."""
    contents = [identity.digest(Path(file)) for kind, file in given.items() if kind not in TRACE_OPTIONS]
    return _read(json.dumps(given, sort_keys=True), *contents)


@lru_cache(TRACES)
def _read(given: str, *_: str) -> Made:
    return workload.replayed(json.loads(given))
