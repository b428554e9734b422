"""The loads at which a prediction is judged: an open loop at a quarter and at 85% of capacity, and a closed loop.

At a quarter of it, batches are small and a step is little more than its fixed part and the host. At 85% a wrong cost
is amplified by the queue. In a closed loop batches are full: an error in the cost shows in the latencies and in busy
time alike, and does not change what is in a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import repeat

import numpy as np

from calibrate.decoder.engine.synthetic import FakeExecutor
from calibrate.replay.clock import FakeClock
from calibrate.replay.driver import Driver
from sim.accounting.requests import RequestRecords
from sim.cost.forms import StepCost
from sim.engine.scheduler import Scheduler
from sim.request import SECOND, Request
from sim.service.clients import Clients, ClosedLoop, OpenLoop

LIGHT, HEAVY = 0.25, 0.85


@dataclass(frozen=True)
class Load:
    """A load by its name, and the clients that make it, anew for each run."""

    name: str
    clients: Callable[[], Clients]


def poisson(lengths: Sequence[Request], rate: float, seed: int) -> list[Request]:
    """The requests, with arrivals at so many a second, exponential gaps drawn from `seed`."""
    arrivals = np.cumsum(np.random.default_rng(seed).exponential(1 / rate, len(lengths)))
    return [
        replace(request, arrival=round(at * SECOND)) for request, at in zip(lengths, arrivals.tolist(), strict=True)
    ]


def capacity(lengths: Sequence[Request], scheduler: Callable[[], Scheduler], cost: StepCost) -> float:
    """Requests a second that an engine serves by a cost while it is full: simulated, all requests there at once.

    Counted from a quarter to three quarters of the requests, without the filling and the emptying.
    """
    clock, full = FakeClock(), scheduler()
    waiting = [replace(request, arrival=0) for request in lengths]
    log = Driver(OpenLoop(waiting), full, FakeExecutor(cost, clock), clock).run()
    ends = np.sort(RequestRecords(log).ended)
    first, last = len(ends) // 4, 3 * len(ends) // 4
    return float((last - first) / (ends[last] - ends[first]) * SECOND)


def three_loads(
    lengths: Sequence[Request],
    scheduler: Callable[[], Scheduler],
    cost: StepCost,
    clients: int,
    seed: int,
    lasts: float | None = None,
) -> list[Load]:
    """A quarter and 85% of what an engine can serve by a cost, and `clients` that send their next request at once.

    Each load has the first of the requests, as many as it serves in `lasts` seconds, at least twice as many as there
    are clients; all of them if it is None.
    """
    most = capacity(lengths, scheduler, cost)

    def first(share: float) -> Sequence[Request]:
        return lengths if lasts is None else lengths[: max(2 * clients, round(share * most * lasts))]

    light, heavy = (poisson(first(share), share * most, seed) for share in (LIGHT, HEAVY))
    return [
        Load(f"open loop at {LIGHT:.0%} of {most:.3g} requests/s", lambda: OpenLoop(light)),
        Load(f"open loop at {HEAVY:.0%} of {most:.3g} requests/s", lambda: OpenLoop(heavy)),
        Load(f"closed loop of {clients}", lambda: ClosedLoop(first(1.0), clients, repeat(0))),
    ]
