"""A request on its way through a service, and the pools of replicas that it passes.

Knows nothing of attempts or failures but who is up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence as Several
from dataclasses import dataclass, field

from sim.cost.forms import StepCost
from sim.engine.scheduler import Scheduler
from sim.log.events import Kind
from sim.request import Leg, Request, Sequence
from sim.service.cluster import First, Load, Router
from sim.service.replica import Replica


class Journey:
    """One request on its way. `state` is where it is: at a router, on an engine, between pools, or at its client.

    leg       what the next engine, or the present one, does of it
    ending    how the client, or a time-out, is ending it right now
    admitted  whether an engine has admitted it in this attempt
    moves     counts its transfers, so that one that is not awaited any more passes unheard
    sent      how often it has been sent to a replica
    """

    __slots__ = ("admitted", "attempt", "ending", "fresh", "leg", "moves", "number", "over", "replica", "request",
                 "sent", "seq", "since", "state")  # fmt: skip

    def __init__(self, request: Request, number: int) -> None:
        self.request = request
        self.number = number
        self.attempt = 0
        self.state = "sent"
        self.leg = Leg()
        self.seq: Sequence | None = None
        self.replica = -1
        self.ending: Kind | None = None
        self.admitted = False
        self.fresh = True
        self.over = False
        self.since = 0
        self.moves = 0
        self.sent = 0


@dataclass(frozen=True)
class Pool:
    """Replicas behind a router. Raises ValueError for several without one."""

    replicas: Several[tuple[Scheduler, StepCost]]
    router: Router = field(default_factory=First)

    def __post_init__(self) -> None:
        if len(self.replicas) > 1 and isinstance(self.router, First):
            raise ValueError(f"{len(self.replicas)} replicas need a router")


class Station:
    """The replicas of one pool, numbered in the whole service from `first` on, and who waits for one to be up."""

    def __init__(self, router: Router, replicas: list[Replica], first: int) -> None:
        self.router = router
        self.replicas = replicas
        self.first = first
        self.loads = [Load() for _ in replicas]
        self.held: deque[Journey] = deque()
        self.alike = len({capacity(replica.scheduler) for replica in replicas}) == 1

    def choose(self, journey: Journey) -> int | None:
        """Where a request goes: to one that is up, of those that it fits on, if any; None if none of these is up."""
        loads = self.loads
        if not self.alike:
            fits = [not misfit(journey, replica.scheduler) for replica in self.replicas]
            if any(fits):
                loads = [load if fit else NOWHERE for load, fit in zip(loads, fits, strict=True)]
        if not any(load.up for load in loads):
            return None
        return self.router.choose(journey.request, loads, journey.sent)

    def complaint(self, journey: Journey) -> str:
        """Why a request could never run on any of them; empty if it could."""
        complaint = ""
        for replica in self.replicas:
            complaint = misfit(journey, replica.scheduler)
            if not complaint:
                break
        return complaint


def capacity(scheduler: Scheduler) -> tuple[object, ...]:
    """What decides whether a request fits on an engine at all."""
    pool = scheduler.pool
    config = scheduler.config
    return pool.pages, pool.page_size, config.max_model_len, config.chunked or config.token_budget


def misfit(journey: Journey, scheduler: Scheduler) -> str:
    """Why a request could never run on an engine; empty if it could."""
    return scheduler.misfit(scheduler.sequence(journey.request, -1, journey.leg))


def nowhere() -> Load:
    """A replica that takes nothing."""
    load = Load()
    load.up = False
    return load


NOWHERE = nowhere()
