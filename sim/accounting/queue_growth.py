"""Whether the queue of a run grows: then its latencies depend on the length of the run; there is no steady state.

Under overload the number of requests left waiting is a random walk with drift; in a stable system it is stationary.
So the test is for a drift in its increments: the t statistic of the mean difference of
consecutive batch means, with a standard error that allows for autocorrelation (Newey and West 1987; the statistic is
z1 of Harvey, Leybourne and Taylor 2007, for series with a unit root). The usual trend test, on the levels, takes the
long excursions of a busy but stable queue for trends.

If every queue clears late in the run, none grows, whatever the statistic. Neither waiting for the next step to be
planned nor the time on the way to an engine counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim.accounting.requests import NEVER, RequestRecords
from sim.log.events import EventLog, Integers, Kind
from sim.log.service_log import ServiceLog

BATCHES = 16
"""Equal parts of the time from the first to the last arrival; the number waiting is averaged over each."""
LAST = 3
"""A queue that clears in the last of so many parts of that time does not grow."""
CRITICAL = 1.04
"""Of the statistic: the 85th percentile of the normal law, its limit for a random walk without drift."""
LAGS = 1
"""How many batches apart two differences are correlated: neighbours share a batch."""

ENTERS = (Kind.QUEUED, Kind.PREEMPTED)
LEAVES = (Kind.ADMITTED, Kind.DEQUEUED)


@dataclass(frozen=True)
class Waits:
    """All waits in one queue: when each began and ended, ns."""

    since: Integers
    until: Integers

    def number(self, time: int) -> int:
        """How many requests wait at an instant, after all events of it."""
        return int((self.since <= time).sum() - (self.until <= time).sum())

    def clears(self, start: int, end: int) -> bool:
        """Whether no request waits at some instant from `start` to `end`."""
        times = np.concatenate((self.since, self.until))
        change = np.repeat([1, -1], len(self.since))
        inside = (times > start) & (times <= end)
        instants, place = np.unique(times[inside], return_inverse=True)
        changes = np.zeros(len(instants), np.int64)
        np.add.at(changes, place, change[inside])
        waiting = self.number(start) + np.concatenate(([0], np.cumsum(changes)))
        return bool(waiting.min() == 0)

    def means(self, edges: NDArray[np.float64]) -> NDArray[np.float64]:
        """The mean number that wait between consecutive instants."""
        waited = elapsed(self.since, edges) - elapsed(self.until, edges)
        means: NDArray[np.float64] = np.diff(waited) / np.diff(edges)
        return means


def elapsed(times: Integers, edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each edge, the sum over `times` of the time from them to the edge, for those before it."""
    ordered = np.sort(times).astype(float)
    before = np.searchsorted(ordered, edges)
    passed: NDArray[np.float64] = before * edges - np.concatenate(([0.0], np.cumsum(ordered)))[before]
    return passed


def grows(logs: Sequence[EventLog], service_log: ServiceLog | None = None) -> bool | None:
    """Whether the requests left waiting at clients, routers and replicas grow in number until the last arrival.

    None if there is no telling: fewer than `BATCHES` requests, or all that come at once.
    """
    requests = [request for log in logs for request in log.requests] if service_log is None else service_log.requests
    arrivals = [request.arrival for request in requests]
    if len(arrivals) < BATCHES or min(arrivals) == max(arrivals):
        return None
    start, end = min(arrivals), max(arrivals)
    fleet = [RequestRecords(log) for log in logs]
    queues = [held_back(fleet, service_log), *(left_waiting(records) for records in fleet)]
    if service_log is not None:
        queues.append(Waits(*service_log.table("holds").T[1:]))
    if all(queue.clears(end - (end - start) // LAST, end) for queue in queues):
        return False
    edges = np.linspace(0, end - start, BATCHES + 1)
    means = np.sum([Waits(queue.since - start, queue.until - start).means(edges) for queue in queues], axis=0)
    if gave_up(fleet) > sum(queue.number(end) for queue in queues):
        means = means[BATCHES // 2 :]
    return drift(means) > CRITICAL


def drift(means: NDArray[np.float64]) -> float:
    """The t statistic of the mean difference of consecutive batch means."""
    gained = np.diff(means)
    spread = gained - gained.mean()
    variance = spread @ spread
    for lag in range(1, LAGS + 1):
        variance += 2 * (1 - lag / (LAGS + 1)) * (spread[lag:] @ spread[:-lag])
    if variance <= 0:
        return float(np.sign(gained.mean()) * np.inf) if gained.any() else 0.0
    return float(gained.sum() / np.sqrt(variance))


def left_waiting(records: RequestRecords) -> Waits:
    """The waits of one replica's queue, each from the first plan that left the request waiting."""
    chosen = np.flatnonzero(np.isin(records.kind, (*ENTERS, *LEAVES)))
    chosen = chosen[np.argsort(records.request[chosen], kind="stable")]
    enters = np.isin(records.kind[chosen], ENTERS)
    since, until = records.time[chosen[enters]], records.time[chosen[~enters]]
    ends = np.concatenate((records.step_ends, [np.iinfo(np.int64).max]))
    planned = ends[np.searchsorted(ends, since)]
    left = planned < until
    return Waits(planned[left], until[left])


def held_back(fleet: Sequence[RequestRecords], service_log: ServiceLog | None) -> Waits:
    """The waits at clients, from the arrival to the sending.

    The shortest of them is what the way to the engine takes: only a longer one is a wait at the client.
    """
    if service_log is None:
        sent = np.concatenate([records.queued for records in fleet])
        lasted = np.concatenate([records.client_wait for records in fleet])
        sent, lasted = sent[sent != NEVER], lasted[sent != NEVER]
    else:
        sent = np.array(service_log.sent, np.int64)
        lasted = sent - np.array([request.arrival for request in service_log.requests], np.int64)
    way = lasted.min(initial=np.iinfo(np.int64).max)
    held = lasted > way
    return Waits(sent[held] - lasted[held] + way, sent[held])


def gave_up(fleet: Sequence[RequestRecords]) -> int:
    """How many requests found the queue full, or left it without a slot.

    Where they are more than those who still wait, they bound the queue: it fills at first and then stays full. So
    only the second half of such a run is tested.
    """
    return sum(int(records.count(Kind.REJECTED).sum() + records.count(Kind.DEQUEUED).sum()) for records in fleet)
