"""Pools of replicas behind a router, and a request on its way through them.

Of failures, only which replicas are up is seen here; attempts are counted in `sim.service.attempts`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence as Several
from dataclasses import dataclass, field
from typing import Literal

from sim.cost.forms import StepCost
from sim.engine.planner import Planner
from sim.log.events import Kind
from sim.request import Leg, Request
from sim.sequence import Sequence
from sim.service.cluster import First, Load, Router
from sim.service.replica import Replica


class RoutedRequest:
    """One request on its way through a service.

    number    its number in the service log
    attempt   the present attempt, counted from 0
    state     where it is: at its client, at a router (held), on a replica, between pools or replicas, or at its
              client again (retrying)
    leg       what the next engine, or the present one, does of it
    seq       its sequence on the replica it was sent to last, and the number of that (`replica`)
    ending    how the client, or a time-out, is ending it right now
    admitted  whether an engine has admitted it in this attempt
    fresh     its first `send` has not returned: the client sees an end by what that returns
    over      it has ended for its client
    since     when it began to wait at a router, ns
    moves     counts its transfers, so that a stale arrival is ignored
    sent      how often it has been sent to a replica
    """

    __slots__ = ("admitted", "attempt", "ending", "fresh", "leg", "moves", "number", "over", "replica", "request",
                 "sent", "seq", "since", "state")  # fmt: skip

    def __init__(self, request: Request, number: int) -> None:
        self.request = request
        self.number = number
        self.attempt = 0
        self.state: Literal["sent", "held", "on replica", "moving", "retrying"] = "sent"
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
    """Replicas, each a scheduler and its cost, behind a router. Raises ValueError for several without a router."""

    replicas: Several[tuple[Planner, StepCost]]
    router: Router = field(default_factory=First)

    def __post_init__(self) -> None:
        if len(self.replicas) > 1 and isinstance(self.router, First):
            raise ValueError(f"{len(self.replicas)} replicas need a router")


class RunningPool:
    """A pool during a run: its replicas, numbered in the whole service from `first` on, and their loads.

    held  requests that wait at the router for a replica to be up, in order
    """

    def __init__(self, router: Router, replicas: list[Replica], first: int) -> None:
        self.router = router
        self.replicas = replicas
        self.first = first
        self.loads = [Load() for _ in replicas]
        self.held: deque[RoutedRequest] = deque()
        self.alike = len({replica.scheduler.capacity for replica in replicas}) == 1

    def choose(self, routed: RoutedRequest) -> int | None:
        """The place of a replica that is up, of those that the request fits on if any; None if none of them is up."""
        loads = self.loads
        if not self.alike:
            fits = [not misfit(routed, replica.scheduler) for replica in self.replicas]
            if any(fits):
                loads = [load if fit else DOWN for load, fit in zip(loads, fits, strict=True)]
        if not any(load.up for load in loads):
            return None
        return self.router.choose(routed.request, loads, routed.sent)

    def complaint(self, routed: RoutedRequest) -> str:
        """Why a request could never run on any of the replicas; empty if it could."""
        complaint = ""
        for replica in self.replicas:
            complaint = misfit(routed, replica.scheduler)
            if not complaint:
                break
        return complaint


def misfit(routed: RoutedRequest, scheduler: Planner) -> str:
    """Why the next leg of a request could never run on an engine; empty if it could."""
    return scheduler.misfit(routed.request, routed.leg)


def down() -> Load:
    """The load of a replica that takes nothing."""
    load = Load()
    load.up = False
    return load


DOWN = down()
