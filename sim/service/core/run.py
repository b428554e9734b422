"""Runs an engine on the compiled core, where it is covered (`sim.service.core.covered`)."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain

import numpy as np

from sim.cost.forms import StepCost
from sim.engine.scheduler import Scheduler
from sim.log.events import EventLog, Kind
from sim.policy.base import LeastUrgent, Optimistic
from sim.policy.fixed_rank import FixedRank
from sim.request import Nanoseconds, Request
from sim.service.bounds import Bounds
from sim.service.clients import Clients, ClosedLoop, OpenLoop, Window
from sim.service.core import binding, costs, covered
from sim.service.core.arrivals import AT_ONCE, COMPLAINTS, Columns, together
from sim.service.pools import Pool
from sim.service.routing import First

PLANS = 1024
"""Plans between two looks at what has been done."""
ORDERS = {"arrival": binding.BY_ARRIVAL, "rank": binding.BY_RANK, "urgency": binding.BY_URGENCY}


def simulated(clients: Clients, pool: Pool, progress: Callable[[int], None] | None, bounds: Bounds) -> bool:
    """Run the one engine of a pool to the end of the last request, into its log; False if Python is to do that.

    It is to where the core is not built, where it does not cover the engine, the clients or a request, and where the
    run is to be stopped or to fail. Then nothing has changed.
    """
    library = binding.library()
    senders = covered.senders(clients)
    if library is None or senders is None or len(pool.replicas) > 1 or not isinstance(pool.router, First):
        return False
    ((scheduler, cost),) = pool.replicas
    if not isinstance(scheduler, Scheduler) or not covered.engine(scheduler, cost):
        return False
    engine = Engine(library, scheduler, cost)
    engine.take_clients(senders, clients.delay)
    try:
        ended = engine.run(senders.requests, progress, bounds)
        if ended:
            engine.hand_over(scheduler.log)
        else:
            senders.requests = chain(engine.log.requests, senders.requests)
    finally:
        engine.close()
    return ended


class Engine:
    """One engine in the compiled core, and the log that it writes."""

    def __init__(self, library: ctypes.CDLL, scheduler: Scheduler, cost: StepCost) -> None:
        log, rank = scheduler.log, covered.rank(scheduler.policy)
        assert rank is not None, "the order is not covered"
        self.library = library
        self.rank = rank
        self.cost = costs.CompiledCost(cost)
        self.config = config(scheduler, rank)
        self.log = EventLog(log.slots, log.pages, log.page_size, log.on_demand, log.depth)
        self.columns = Columns(scheduler, rank)
        self.core: int | None = None

    def take_clients(self, senders: OpenLoop | ClosedLoop, delay: Nanoseconds) -> None:
        """Have these clients send the requests, which are `delay` ns on their way."""
        config = self.config
        config.delay = delay
        if isinstance(senders, ClosedLoop):
            config.clients, config.at_once = binding.CLOSED_LOOP, min(senders.clients, costs.EXACT)
            config.think = covered.think(senders)
        elif isinstance(senders, Window):
            config.clients, config.at_once = binding.WINDOW, min(senders.size, costs.EXACT)
        else:
            self.columns.delay = delay

    def run(self, requests: Iterator[Request], progress: Callable[[int], None] | None, bounds: Bounds) -> bool:
        """Run to the end of the last request; whether it came to that, within the bounds."""
        self.core = self.library.core_new(self.config, self.cost.cost)
        if self.core is None:
            return False
        at_once = AT_ONCE if self.config.clients == binding.OPEN_LOOP else sys.maxsize
        for chunk, last in together(requests, self.log.requests, at_once):
            if not covered.requests(chunk, self.columns.pool):
                return False
            try:
                arrivals, _kept = self.columns.of(chunk, last)
            except OverflowError:
                return False
            self.library.core_feed(self.core, arrivals)
            found = binding.PAUSED
            while found == binding.PAUSED:
                found = self.library.core_run(self.core, PLANS)
                if found == binding.GIVEN_UP or not self.read_log(bounds):
                    return False
                if progress is not None:
                    progress(self.log.ended)
        return True

    def read_log(self, bounds: Bounds) -> bool:
        """Move what the core has logged into the log; whether it is within the bounds."""
        found, log = self.library.core_log(self.core).contents, self.log
        log.events += found.events.read()
        log.stays += found.stays.read()
        log.stints += found.stints.read()
        log.chunks += found.chunks.read()
        log.ran.runs += found.runs.read()
        log.ran.durations.frombytes(found.durations.read())
        log.ran.growth.frombytes(found.growth.read())
        log.rests += found.rests.read()
        log.ended = found.ended
        self.library.core_empty_log(self.core)
        return (bounds.steps is None or found.steps <= bounds.steps) and (
            bounds.batches is None or found.batches <= bounds.batches
        )

    def hand_over(self, log: EventLog) -> None:
        """Have another log of the same engine, which is empty, hold what this one holds."""
        if self.config.clients == binding.CLOSED_LOOP:
            self.log.requests = list(map(sent_at, self.log.requests, self.sent()))
        if log.cache is not None:
            found = self.library.core_log(self.core).contents
            log.cache.queried, log.cache.requeried = found.queried, found.requeried
            log.cache.evictions = found.evictions
        numbers = (ctypes.c_int64 * len(COMPLAINTS))()
        count = self.library.core_reasons(self.core, numbers)
        log.reasons = [COMPLAINTS[number] for number in numbers[:count]]
        log.requests, log.ended, log.ran = self.log.requests, self.log.ended, self.log.ran
        log.events, log.stays, log.stints = self.log.events, self.log.stays, self.log.stints
        log.chunks, log.rests = self.log.chunks, self.log.rests

    def sent(self) -> list[Nanoseconds]:
        """When each request was sent, in order."""
        events = self.log.event_table()
        arrived = np.isin(events[:, 1], (Kind.QUEUED, Kind.REJECTED))
        times: list[Nanoseconds] = (events[arrived, 0] - self.config.delay).tolist()
        return times

    def close(self) -> None:
        """Free the memory of the core."""
        self.library.core_free(self.core)


def sent_at(request: Request, now: Nanoseconds) -> Request:
    """A request of a closed loop, which arrives when it is sent."""
    return replace(request, arrival=now)


def config(scheduler: Scheduler, rank: FixedRank) -> binding.Config:
    """The engine, its pool and its policy for the core."""
    given, pool, policy = scheduler.config, scheduler.pool, scheduler.policy
    queue_limit = costs.EXACT if given.queue_limit is None else given.queue_limit
    numbers = {
        "slots": given.slots,
        "token_budget": given.token_budget,
        "most_active": given.most_active,
        "admit_every": given.admit_every,
        "chunk_limit": given.chunk_limit,
        "queue_limit": queue_limit,
    }
    return binding.Config(
        **{name: min(number, costs.EXACT) for name, number in numbers.items()},
        chunked=given.chunked,
        depth=given.depth,
        chunk_limit_adapts=given.chunk_limit_adapts,
        pages=pool.pages,
        page_size=pool.page_size,
        remembers=pool.remembers,
        reserves=policy.admission.reserves,
        whole=isinstance(policy.admission, Optimistic) and policy.admission.whole,
        spare=policy.admission.spare(pool, 0, 0),
        order=ORDERS[rank.by],
        appends=policy.order.appends,
        least_urgent=isinstance(policy.victim, LeastUrgent),
        per_generated=rank.per_generated,
    )
