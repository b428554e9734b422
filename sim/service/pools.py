"""Pools: replicas behind a router, as they are given (Pool) and during a run (RunningPool).

Of failures, only which replicas are up is seen here; what becomes of a request is decided in `sim.service.service`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from collections.abc import Sequence as Several
from dataclasses import dataclass, field
from functools import partial

from sim.cost.forms import StepCost
from sim.engine.planner import Planner
from sim.engine.scheduler import Scheduler
from sim.request import Leg, Request
from sim.sequence import Sequence
from sim.service.clock import Clock
from sim.service.replica import Replica
from sim.service.routing import First, Load, RoutedRequest, Router


@dataclass(frozen=True)
class Pool:
    """Replicas, each a scheduler and its cost, behind a router. Raises ValueError for several without a router."""

    replicas: Several[tuple[Planner, StepCost]]
    router: Router = field(default_factory=First)

    def __post_init__(self) -> None:
        if len(self.replicas) > 1 and isinstance(self.router, First):
            raise ValueError(f"{len(self.replicas)} replicas need a router")


class RunningPool:
    """A pool during a run: its replicas, numbered in the whole service from `first` on, and their loads.

    fallen  replicas that are down
    held    requests that wait at the router for a replica to be up, in order
    """

    def __init__(
        self,
        env: Clock,
        pool: Pool,
        first: int,
        macro: bool,
        on_end: Callable[[int, Sequence], None] | None,
        on_fetch: Callable[[int, Sequence, int | None], None] | None = None,
    ) -> None:
        """`on_end` and `on_fetch` are those of `sim.service.replica`, called with the number of the replica first."""
        self.router = pool.router
        self.first = first
        self.replicas = [
            Replica(
                env,
                scheduler,
                cost,
                macro,
                on_end and partial(on_end, number),
                number,
                on_fetch and partial(on_fetch, number),
            )
            for number, (scheduler, cost) in enumerate(pool.replicas, first)
        ]
        self.loads = [Load() for _ in self.replicas]
        self.fallen = 0
        self.held: deque[RoutedRequest] = deque()
        self.alike = len({replica.scheduler.capacity for replica in self.replicas}) == 1

    def choose(self, request: Request, leg: Leg, sent: int) -> int | None:
        """The place of a replica that is up, of those that the leg fits on if any; None if none of them is up.

        sent  how often the request has been sent to a replica before
        """
        if self.fallen == len(self.replicas):
            return None
        loads = self.loads
        if not self.alike:
            fits = [not replica.scheduler.misfit(request, leg) for replica in self.replicas]
            if any(fits):
                loads = [load if fit else DOWN for load, fit in zip(loads, fits, strict=True)]
                if not any(load.up for load in loads):
                    return None
        return self.router.choose(request, loads, sent)

    def fall(self, number: int) -> None:
        """A replica takes nothing any more."""
        self.fallen += 1
        self.loads[number - self.first].up = False

    def rise(self, number: int) -> deque[RoutedRequest]:
        """A replica is up again; returns the requests that were held, and holds them no longer."""
        self.fallen -= 1
        self.loads[number - self.first].up = True
        held, self.held = self.held, deque()
        return held

    def complaint(self, request: Request, leg: Leg) -> str:
        """Why a leg of a request could never run on any of the replicas; empty if it could."""
        complaint = ""
        for replica in self.replicas:
            complaint = replica.scheduler.misfit(request, leg)
            if not complaint:
                break
        return complaint


def check_pools(pools: Several[Pool], transfer: object) -> None:
    """Raise ValueError for two pools that cannot hand requests over."""
    if len(pools) == 1:
        return
    if transfer is None:
        raise ValueError("two pools need a transfer between them")
    for scheduler, _ in (replica for pool in pools for replica in pool.replicas):
        if not isinstance(scheduler, Scheduler) or scheduler.config.evict == "after" or scheduler.closed:
            raise ValueError("two pools need continuous batching and evict 'before'")


def down() -> Load:
    """The load of a replica that takes nothing."""
    load = Load()
    load.up = False
    return load


DOWN = down()
