"""Whether a run's queue grows: then its latencies are those of its length, and no steady state's.

A queue that an engine can bear clears again and again. One that has not cleared in the last third of the time in
which requests came, and was longer at its end than at its beginning, grows. Whoever waits for the next step to
be planned does not count: what counts is who is left waiting after a plan.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sim.events import EventLog, Integers
from sim.lives import Lives

LAST = 3
"""One part of so many, at the end of the arrivals, in which a queue has to clear."""


def grows(logs: Sequence[EventLog]) -> bool | None:
    """Whether the queue of any replica, or what clients hold back, grows until the last arrival.

    None if there is no telling: fewer than `LAST` requests, or all that come at once.
    """
    fleet = [Lives(log) for log in logs]
    arrivals = np.sort(np.concatenate([[request.arrival for request in log.requests] for log in logs]))
    if len(arrivals) < LAST or arrivals[0] == arrivals[-1]:
        return None
    start, end = int(arrivals[0]), int(arrivals[-1])
    since = end - (end - start) // LAST
    return any(growing(*seen, since, end) for lives in fleet for seen in (left_waiting(lives), held_back(lives)))


def growing(times: Integers, waiting: Integers, since: int, end: int) -> bool:
    """Whether a number that changes at `times` is never 0 from `since` to `end`, and more in the second half."""
    before = max(int(np.searchsorted(times, since, side="right")) - 1, 0)
    after = int(np.searchsorted(times, end, side="right"))
    times, waiting = np.maximum(times[before:after], since), waiting[before:after]
    if not len(waiting) or waiting.min() == 0:
        return False
    lasts = np.diff(times, append=end)
    second = np.clip(times + lasts - np.maximum(times, (since + end) // 2), 0, None)
    return float(waiting @ second) > float(waiting @ (lasts - second))


def left_waiting(lives: Lives) -> tuple[Integers, Integers]:
    """When each run of steps was planned, and who was left waiting then."""
    runs = lives.log.run_table()
    return runs["planned"], runs["waiting"]


def held_back(lives: Lives) -> tuple[Integers, Integers]:
    """When requests were held back by their clients and sent, and how many then were.

    The shortest of these waits is what the way to the engine takes: only a longer one is a wait at the client.
    """
    queued, lasted = lives.queued, lives.client_wait
    way = lasted[lasted >= 0].min(initial=np.iinfo(np.int64).max)
    held = lasted > way
    times = np.concatenate((queued[held] - lasted[held] + way, queued[held]))
    change = np.repeat([1, -1], int(held.sum()))
    order = np.lexsort((-change, times))
    return times[order], np.cumsum(change[order])
