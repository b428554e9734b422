"""A whole run: clients send requests, a router picks a replica, the logs come out. Knows no file and no policy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Sequence as Several
from typing import Protocol

from sim.cost.forms import StepCost
from sim.engine.scheduler import Scheduler
from sim.log.events import EventLog
from sim.request import Request, Sequence
from sim.service.bounds import NONE, Bounds, run_to_end
from sim.service.clients import Clients, OpenLoop, set_limits
from sim.service.replica import Clock, Replica


class Load:
    """What a router may know of a replica: what was sent there and has not ended.

    requests  how many
    tokens    their prompts and the most they may generate
    up        whether it takes requests: it has not failed
    """

    __slots__ = ("requests", "tokens", "up")

    def __init__(self) -> None:
        self.requests = 0
        self.tokens = 0
        self.up = True

    def add(self, request: Request, sign: int = 1) -> None:
        """A request was sent there (sign -1: it has ended)."""
        self.requests += sign
        self.tokens += sign * (request.prompt + request.max_output)


class Router(Protocol):
    """Decides which replica a request goes to."""

    def choose(self, request: Request, loads: Several[Load], sent: int = 0) -> int:
        """The number of a replica that is up, given the load of each; asked only if there is one.

        `sent` is how often the request has been sent to a replica before: in earlier attempts, to another pool, or
        to one that failed.
        """


class First:
    """The router of a single engine."""

    def choose(self, request: Request, loads: Several[Load], sent: int = 0) -> int:
        """The only one there is."""
        return 0


class Gateway:
    """Passes requests on to the replicas, and ends them when their client gives up."""

    def __init__(self, env: Clock, router: Router, clients: Clients) -> None:
        self.env = env
        self.router = router
        self.routed = not isinstance(router, First)
        self.clients = clients
        self.replicas: list[Replica] = []
        self.loads: list[Load] = []

    def add(self, scheduler: Scheduler, cost: StepCost, macro: bool) -> None:
        """One replica more."""
        load = Load()
        self.loads.append(load)

        def ended(seq: Sequence) -> None:
            load.add(seq.request, -1)
            if self.clients.react:
                self.clients.ended(seq)

        listens = self.clients.react or self.routed
        number = len(self.replicas)
        self.replicas.append(Replica(self.env, scheduler, cost, macro, ended if listens else None, number))

    def send(self, request: Request) -> bool:
        """A request enters now; whether it was taken: not rejected, and its client still waits for it."""
        number = self.router.choose(request, self.loads) if self.routed else 0
        replica = self.replicas[number]
        patience = self.clients.patience(request)
        if patience is not None and patience <= 0:
            replica.scheduler.discard(request, self.env.now)
            return False
        seq = replica.submit(request)
        if seq is None:
            return False
        if self.routed:
            self.loads[number].add(request)
        if request.impatient:
            set_limits(self.env, seq, patience, replica.abort)
        return True


def simulate(
    requests: Iterable[Request] | Clients,
    scheduler: Scheduler,
    cost: StepCost,
    macro: bool = True,
    progress: Callable[[int], None] | None = None,
    bounds: Bounds = NONE,
) -> EventLog:
    """Run one engine to the end of the last request; returns the log.

    Requests come in order of arrival, each on its schedule, or from clients that react to what becomes of them.
    `macro=False` makes every step an event of its own: the reference, slower, with the same log.
    `progress` is told now and then how many requests have ended. Raises `sim.service.bounds.Stopped` for a run
    beyond its bounds, and for one that makes no progress.
    """
    return simulate_cluster(requests, [(scheduler, cost)], First(), macro, progress, bounds)[0]


def simulate_cluster(
    requests: Iterable[Request] | Clients,
    replicas: Iterable[tuple[Scheduler, StepCost]],
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
    gateway = Gateway(env, router, clients)
    for scheduler, cost in replicas:
        gateway.add(scheduler, cost, macro)
    logs = [replica.scheduler.log for replica in gateway.replicas]
    clients.start(env, gateway.send)
    run_to_end(env, logs, bounds=bounds, progress=progress)
    for replica in gateway.replicas:
        replica.scheduler.check()
    return logs
