"""Random failures of replicas, and the random backoff of retries.

Every replica and every request has a random stream of its own, so that none depends on another.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import merge
from math import log
from random import Random

from sim.log.events import Kind
from sim.request import Nanoseconds, Request
from sim.service.outages import Outages, Times
from sim.service.service import Retry
from slotstep.scenario.clients import Retry as RetrySection
from slotstep.scenario.cluster import Cluster

FATES = {"resumed": Kind.PREEMPTED, "moved": Kind.MOVED, "lost": Kind.INTERRUPTED}
CAUSES = {"rejected": Kind.REJECTED, "timed_out": Kind.TIMED_OUT, "failed": Kind.INTERRUPTED}


def outages(cluster: Cluster, seed: int) -> Outages | None:
    """The outages of a cluster's replicas, planned and drawn."""
    given = cluster.failures
    if given is None:
        return None
    when: dict[int, Times] = {}
    for replica in range(cluster.total):
        planned = sorted((outage.at, outage.lasts) for outage in given.outages if outage.replica == replica)
        by_lot: Times = iter(())
        if given.mtbf is not None and given.mttr is not None:
            by_lot = drawn(given.mtbf, given.mttr, Random(f"{seed}/outages/{replica}"))
        when[replica] = merge(planned, by_lot)
    return Outages(when, FATES[given.work])


def drawn(mtbf: Nanoseconds, mttr: Nanoseconds, stream: Random) -> Times:
    """Outages without end: time up and time down are exponential with means `mtbf` and `mttr`, each at least 1 ns."""
    now = 0
    while True:
        now += max(1, round(stream.expovariate(1 / mtbf)))
        lasts = max(1, round(stream.expovariate(1 / mttr)))
        yield now, lasts
        now += lasts


def retry(given: RetrySection | None, seed: int) -> Retry | None:
    """The retry rule of the clients; None without one."""
    if given is None:
        return None
    return Retry(given.attempts, backoff(given, seed), tuple(CAUSES[cause] for cause in given.after))


def backoff(given: RetrySection, seed: int) -> Callable[[Request, int], Nanoseconds]:
    """The pause after a number of attempts: `initial` x `factor`^(attempts - 1), at most `max`.

    A random share of up to `jitter` of it, drawn for each request and attempt, is subtracted.
    """

    def pause(request: Request, attempts: int) -> Nanoseconds:
        reaches = given.initial and log(given.max / given.initial) <= (attempts - 1) * log(given.factor)
        whole = given.max if reaches else given.initial * given.factor ** (attempts - 1)
        drawn = Random(f"{seed}/retry/{request.id}/{attempts}").random() if given.jitter else 0.0
        return round(min(whole, given.max) * (1 - given.jitter * drawn))

    return pause
