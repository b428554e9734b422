"""A run in which every request goes to one replica and ends there: clients, a router, replicas, to the last end.

Independent of files and of policies by name. Retries, failures and two pools: `sim.service.service`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Sequence as Several
from typing import Protocol

from sim.cost.forms import StepCost
from sim.engine.planner import Planner
from sim.log.events import EventLog
from sim.request import Request
from sim.sequence import Sequence
from sim.service.bounds import NONE, Bounds, run_to_end
from sim.service.clients import Clients, OpenLoop, Send, set_limits
from sim.service.clock import Clock
from sim.service.replica import Replica


class Load:
    """The load of a replica as a router sees it: what was sent there and has not ended.

    requests  number of requests
    tokens    their prompt tokens and the most tokens they may generate
    up        whether the replica takes requests: it has not failed
    """

    __slots__ = ("requests", "tokens", "up")

    def __init__(self) -> None:
        self.requests = 0
        self.tokens = 0
        self.up = True

    def add(self, request: Request, sign: int = 1) -> None:
        """A request was sent there (sign 1), or has ended (sign -1)."""
        self.requests += sign
        self.tokens += sign * (request.prompt + request.max_output)


class Router(Protocol):
    """Decides which replica a request goes to."""

    def choose(self, request: Request, loads: Several[Load], sent: int = 0) -> int:
        """The number of a replica that is up; called for every request that is sent, if any replica is up.

        loads  the load of each replica, in order of their numbers
        sent   how often the request has been sent to a replica before: in earlier attempts, to another pool, or to
               a replica that failed
        """


class First:
    """The router of a single replica."""

    def choose(self, request: Request, loads: Several[Load], sent: int = 0) -> int:
        """Number 0."""
        return 0


def simulate(
    requests: Iterable[Request] | Clients,
    scheduler: Planner,
    cost: StepCost,
    macro: bool = True,
    progress: Callable[[int], None] | None = None,
    bounds: Bounds = NONE,
) -> EventLog:
    """Run one engine to the end of the last request; returns its log.

    requests  in order of arrival, each sent on its own schedule; or clients that react to the ends of requests
    macro     False makes every step an event of its own: the reference, slower, with the same log
    progress  called now and then with the number of requests that have ended

    Raises `sim.service.bounds.Stopped` for a run beyond its bounds, and for one that makes no progress.
    """
    return simulate_cluster(requests, [(scheduler, cost)], First(), macro, progress, bounds)[0]


def simulate_cluster(
    requests: Iterable[Request] | Clients,
    replicas: Iterable[tuple[Planner, StepCost]],
    router: Router,
    macro: bool = True,
    progress: Callable[[int], None] | None = None,
    bounds: Bounds = NONE,
) -> list[EventLog]:
    """Run several engines behind a router, in one virtual time; returns a log for each, in their order.

    Each replica has a scheduler and a cost of its own; see `simulate` for the rest.
    """
    clients = requests if isinstance(requests, Clients) else OpenLoop(requests)
    env = Clock(initial_time=0)
    engines = list(replicas)
    loads = None if isinstance(router, First) else [Load() for _ in engines]
    running = [
        Replica(env, scheduler, cost, macro, on_end(clients, loads[number] if loads else None), number)
        for number, (scheduler, cost) in enumerate(engines)
    ]
    logs = [scheduler.log for scheduler, _ in engines]
    clients.start(env, dispatcher(clients, running, router, loads))
    run_to_end(env, logs, bounds=bounds, progress=progress)
    for scheduler, _ in engines:
        scheduler.check()
    return logs


def on_end(clients: Clients, load: Load | None) -> Callable[[Sequence], None] | None:
    """What a replica calls when a request ends: `load`, if a router sees it, is updated, and clients are notified."""
    react = clients.react
    if load is None:
        return clients.ended if react else None

    def ended(seq: Sequence) -> None:
        load.add(seq.request, -1)
        if react:
            clients.ended(seq)

    return ended


def dispatcher(clients: Clients, replicas: Several[Replica], router: Router, loads: Several[Load] | None) -> Send:
    """How clients send: to the replica that the router chooses by the loads, to the only one where there are none."""

    def send(request: Request) -> bool:
        number = router.choose(request, loads) if loads else 0
        replica = replicas[number]
        patience = clients.patience(request)
        if patience is not None and patience <= 0:
            replica.scheduler.discard(request, replica.env.now)
            return False
        seq = replica.submit(request)
        if seq is None:
            return False
        if loads:
            loads[number].add(request)
        if request.patience.timed:
            set_limits(replica.env, seq, patience, replica.abort)
        return True

    return send
