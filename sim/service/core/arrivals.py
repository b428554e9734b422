"""Requests as the compiled core takes them: columns, some thousand requests at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.engine.scheduler import Scheduler
from sim.policy.base import LeastUrgent
from sim.policy.fixed_rank import FixedRank
from sim.request import ENDLESS, Nanoseconds, Request
from sim.service.core import binding
from sim.service.core.costs import EXACT

AT_ONCE = 16_384
"""Requests that are handed over together, or more, if they arrive together."""
QUEUE_IS_FULL = 4
COMPLAINTS = {
    1: "prompt leaves no room for an output",
    2: "needs more pages than exist",
    3: "prompt exceeds the token budget",
    QUEUE_IS_FULL: "queue is full",
}
"""Reasons of a rejection, as `sim.engine.intake` writes them."""

Integers = NDArray[np.int64]


def together(
    requests: Iterator[Request], taken: list[Request], at_once: int = AT_ONCE
) -> Iterator[tuple[list[Request], bool]]:
    """(at least so many requests, but for the last; whether these are the last), all of one arrival together.

    taken  gets every request that is read
    """
    chunk = list(islice(requests, at_once))
    taken += chunk
    for request in requests:
        taken.append(request)
        if request.arrival == chunk[-1].arrival:
            chunk.append(request)
            continue
        yield chunk, False
        more = list(islice(requests, at_once - 1))
        taken += more
        chunk = [request, *more]
    yield chunk, True


class Columns:
    """Makes columns of requests for one engine.

    delay  ns from the arrival of a request to when it enters the queue, in an open loop
    """

    def __init__(self, scheduler: Scheduler, rank: FixedRank) -> None:
        self.config = scheduler.config
        self.pool = scheduler.pool
        self.delay: Nanoseconds = 0
        self.rank = rank
        self.urgent = rank.by == "urgency" or isinstance(scheduler.policy.victim, LeastUrgent)

    def of(self, requests: list[Request], last: bool) -> tuple[binding.Arrivals, list[Any]]:
        """The requests for the core, and the arrays that they are in.

        Raises OverflowError for a number that the core does not compute with.
        """
        read = partial(column, requests)
        wanted, prompt, output, declared = map(read, ("arrival", "prompt", "output", "declared"))
        large = (prompt >= EXACT) | (output >= EXACT) | (declared >= EXACT)
        if ((wanted >= binding.LATEST - self.delay) | large).any():
            raise OverflowError("a number is too large for the core")
        goal, most, cut_short = self.targets(requests, prompt, output, np.where(declared, declared, output))
        nothing = np.zeros(len(requests), np.int64)
        columns = {
            "arrival": wanted + self.delay,
            "prompt": prompt,
            "goal": goal,
            "most": most,
            "cut_short": cut_short.astype(np.int64),
            "complaint": self.complaints(prompt, most),
            "priority": read("priority") if self.urgent else nothing,
            "wanted": wanted,
            "id_place": places(list(map(attrgetter("id"), requests))) if self.urgent else nothing,
            "rank": ranks(requests, self.rank.rank),
        }
        if self.urgent and (abs(columns["priority"]) >= EXACT).any():
            raise OverflowError("a priority is too large for the core")
        pointers = {name: array.ctypes.data for name, array in columns.items()}
        return binding.Arrivals(count=len(requests), last=last, **pointers), list(columns.values())

    def targets(
        self, requests: list[Request], prompt: Integers, output: Integers, most_output: Integers
    ) -> tuple[Integers, Integers, NDArray[np.bool_]]:
        """`goal`, `most` and `cut_short` of `sim.sequence.Target`."""
        goal, end, most = prompt + output, prompt + output, prompt + most_output
        if any(request.patience is not ENDLESS for request in requests):
            for place, request in enumerate(requests):
                if request.patience.cancel_tokens is not None:
                    goal[place] = min(goal[place], prompt[place] + request.patience.cancel_tokens)
        longest = self.config.longest
        goal, end, most = (np.minimum(each, longest) for each in (goal, end, most))
        return goal - 1, most - 1, goal < end

    def complaints(self, prompt: Integers, most: Integers) -> Integers:
        """Which of COMPLAINTS `Intake.misfit` would make, 0 where none."""
        config, pool = self.config, self.pool
        found = np.where(-(-most // pool.page_size) > pool.pages, 2, 0)
        if not config.chunked:
            found = np.where((found == 0) & (prompt > config.token_budget), 3, found)
        return np.where(prompt >= config.longest, 1, found)


def column(requests: list[Request], name: str) -> Integers:
    """One field of each request: int64 of shape (requests,). Raises OverflowError beyond 64 bits."""
    return np.fromiter(map(attrgetter(name), requests), np.int64, len(requests))


def ranks(requests: list[Request], rank: Callable[[Request], float] | None) -> NDArray[np.float64]:
    """The rank of each request: float64. Raises OverflowError for one that is not exact, or no number."""
    if rank is None:
        return np.zeros(len(requests))
    found = np.fromiter(map(rank, requests), np.float64, len(requests))
    if not (abs(found) < EXACT).all():
        raise OverflowError("a rank is too large for the core")
    return found


def places(ids: list[str]) -> Integers:
    """The place of each id in the order of all of them; equal ids have the same."""
    ordered = {name: place for place, name in enumerate(sorted(set(ids)))}
    return np.array([ordered[name] for name in ids], np.int64)
