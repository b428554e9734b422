"""The requests of each seed at the scenario's own rate, kept in a process for the runs at other rates."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from slotstep.experiments.sweeps.work import read_once
from slotstep.runs.workload import LoadedWorkload, load

if TYPE_CHECKING:
    from slotstep.scenario.schema import Scenario

MOST_REQUESTS = 400_000
"""Requests that a process keeps; about 0.5 kB each."""

kept: OrderedDict[str, LoadedWorkload] = OrderedDict()


def of(scenario: Scenario, workload: Mapping[str, Any], search: str) -> LoadedWorkload:
    """The requests of a scenario, whose workload is `workload`; those that the same search has made before."""
    key = json.dumps([search, scenario.seed, workload], sort_keys=True)
    if key not in kept:
        while kept and sum(len(each.requests) for each in kept.values()) > MOST_REQUESTS:
            kept.popitem(last=False)
        kept[key] = load(scenario, read_once)
    kept.move_to_end(key)
    return kept[key]
