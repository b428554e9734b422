"""The short way from client to replica, where each request goes to one replica of one pool and ends there.

Without retries, outages and a second pool, a request has one attempt of one leg. `sim.service.service` then writes
the same logs of replicas, and a service log that adds nothing to them: no record of the request is needed here, and
none is made. Only a request that its client has given up on its way differs: with no service log, it is entered in
the log of the replica that the router chooses for it.
"""

from __future__ import annotations

from sim.request import ENDLESS, WHOLE, Request
from sim.sequence import Sequence
from sim.service.clients import Clients, set_limits
from sim.service.clock import Clock
from sim.service.pools import Pool, RunningPool
from sim.service.replica import Replica
from sim.service.routing import First


class Direct:
    """Sends requests to the replicas of one pool whose logs say all that happens.

    arrivals  where clients schedule what they send
    watched   whether a router sees the loads
    """

    service_log = None

    def __init__(self, env: Clock, clients: Clients, pool: Pool, macro: bool) -> None:
        self.arrivals = env
        self.clients = clients
        self.watched = not isinstance(pool.router, First)
        self.pool = RunningPool(env, pool, 0, macro, self.ended if self.watched or clients.react else None)

    @property
    def replicas(self) -> list[Replica]:
        """The replicas."""
        return self.pool.replicas

    def send(self, request: Request) -> bool:
        """A client's request arrives at its replica; returns whether it was taken."""
        pool = self.pool
        number = (pool.choose(request, WHOLE, 0) or 0) if self.watched else 0
        replica = pool.replicas[number]
        impatient = request.patience is not ENDLESS
        patience = self.clients.patience(request) if impatient else None
        if patience is not None and patience <= 0:
            replica.scheduler.discard(request, self.arrivals.now)
            return False
        seq = replica.submit(request)
        if seq is None:
            return False
        if self.watched:
            pool.loads[number].add(request)
        if impatient:
            set_limits(self.arrivals, seq, patience, replica.abort)
        return True

    def ended(self, number: int, seq: Sequence) -> None:
        """A request has ended: the router sees it, and clients that wait for it are notified."""
        self.pool.loads[number].add(seq.request, -1)
        if self.clients.react:
            self.clients.ended(seq)

    def check(self) -> None:
        """Check what holds once every request has ended: nothing is left over. Raises AssertionError."""
        for replica in self.replicas:
            replica.scheduler.check()
