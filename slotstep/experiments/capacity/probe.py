"""The first run at a value, which only says where a search begins: it ends once it has missed an objective."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sim.accounting.requests import NEVER, RequestRecords
from sim.cost.forms import StepCost
from sim.log.events import EventLog, Integers, Kind
from sim.request import SECOND
from slotstep.experiments.capacity.objective import Objective
from slotstep.experiments.capacity.trial import Trial, attempt

if TYPE_CHECKING:
    from slotstep.scenario.schema import Scenario

SHARE = 0.25
"""The part of what an objective allows that a run may miss without counting as missed: other runs may miss more."""
CHECKS = 20
"""How often a run is looked at."""
ENDS = {"wait_s": Kind.ADMITTED, "ttft_s": Kind.FIRST_TOKEN, "e2e_s": Kind.FINISHED}
"""The event with which a latency ends."""


class Missed(Exception):  # noqa: N818 - the way in which such a run ends
    """An objective is missed, whatever comes after."""


class Watch:
    """Ends a run of `requests` requests once more of them are late than may be, or their sum is above that of a mean.

    Only times from the queue to one event are looked at, and only where each request is in one log.
    """

    def __init__(self, scenario: Scenario, objectives: Sequence[Objective], requests: int) -> None:
        again = scenario.clients is not None and scenario.clients.retry is not None
        single = scenario.cluster.uniform and not again
        self.objectives = [each for each in objectives if single and each.latency in ENDS]
        self.wanted = scenario.objectives.since == "wanted"
        self.requests = requests
        self.seen = 0

    def __call__(self, logs: Sequence[EventLog]) -> None:
        """Look at the logs so far. Raises Missed."""
        ended = sum(log.ended for log in logs)
        if not self.objectives or ended - self.seen < self.requests / CHECKS:
            return
        self.seen = ended
        fleet = [RequestRecords(log) for log in logs]
        for each in self.objectives:
            assert each.latency is not None
            assert each.limit is not None
            values = np.concatenate([self.times(records, each.latency) for records in fleet]) / SECOND
            if each.allowed is None:
                missed = values.sum() > each.limit * self.requests
            else:
                missed = np.count_nonzero(values > each.limit) > SHARE * each.allowed * self.requests
            if missed:
                raise Missed

    def times(self, records: RequestRecords, latency: str) -> Integers:
        """The latency of the requests that have it, ns."""
        end = records.when(ENDS[latency], first=True)
        begin = records.wanted if self.wanted else records.queued
        found: Integers = (end - begin)[end != NEVER]
        return found


def probe(
    settings: Mapping[str, Any],
    seed: int,
    objectives: Sequence[Objective],
    price: StepCost | None = None,
    rate: float | None = None,
    search: str = "",
) -> Trial | None:
    """As `attempt`; None for a run that was ended because it has missed an objective."""
    try:
        return attempt(settings, seed, objectives, price, rate, search, Watch)
    except Missed:
        return None


def promising(trial: Trial | None, objectives: Sequence[Objective]) -> bool:
    """Whether a run has missed no objective, at most SHARE of what it allows, and its queue does not grow."""
    if trial is None or trial.grows:
        return False
    return all(
        (measured.value or 0.0) <= (each.limit or 0.0)
        if each.allowed is None
        else (measured.late or 0.0) <= SHARE * each.allowed
        for each, measured in zip(objectives, trial.measured, strict=True)
    )
