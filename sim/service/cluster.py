"""One engine, or several behind a router, by themselves: services whose replicas' logs say all that happens.

Calls of `sim.service.service.serve` without retries, outages, a second pool and a service log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sim.cost.forms import StepCost
from sim.engine.planner import Planner
from sim.log.events import EventLog
from sim.request import Request
from sim.service.bounds import NONE, Bounds
from sim.service.clients import Clients
from sim.service.pools import Pool
from sim.service.routing import Router
from sim.service.service import serve


def simulate(
    requests: Iterable[Request] | Clients,
    scheduler: Planner,
    cost: StepCost,
    macro: bool = True,
    progress: Callable[[int], None] | None = None,
    bounds: Bounds = NONE,
) -> EventLog:
    """Run one engine to the end of the last request; returns its log. See `serve`, also for what it raises."""
    served = serve(requests, [Pool([(scheduler, cost)])], direct=True, macro=macro, progress=progress, bounds=bounds)
    return served.logs[0]


def simulate_cluster(
    requests: Iterable[Request] | Clients,
    replicas: Iterable[tuple[Planner, StepCost]],
    router: Router,
    macro: bool = True,
    progress: Callable[[int], None] | None = None,
    bounds: Bounds = NONE,
) -> list[EventLog]:
    """Run several engines behind a router, in one virtual time; returns the log of each. See `serve`."""
    pool = Pool(list(replicas), router)
    return serve(requests, [pool], direct=True, macro=macro, progress=progress, bounds=bounds).logs
