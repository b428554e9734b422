"""What verifications of drafts brought to the requests of one engine (Verifications); a pure function of its log."""

from __future__ import annotations

import numpy as np

from sim.log.events import EventLog, Integers, Kind


class Verifications:
    """The verifications of a log, in order: int64 of shape (verifications,).

    request, step  whose, and in which step
    start          positions of the request before
    tokens         positions computed: its latest token and its drafts
    given          tokens that it brought
    delivered      those of them that the client waited for
    """

    def __init__(self, log: EventLog, awaited: Integers) -> None:
        """`awaited`: for each request, the step from which on nobody waited for its tokens."""
        self.step, self.request, self.start, self.tokens, self.given = log.ran.verification_table().T
        self.delivered = np.where(self.step < awaited[self.request], self.given, 0)

    @property
    def rejected(self) -> int:
        """Positions computed for drafts that brought no token."""
        return int((self.tokens - self.given).sum())

    def tokens_of(self, requests: int) -> Integers:
        """Tokens delivered to each request: shape (requests,)."""
        return np.bincount(self.request, self.delivered, requests).astype(np.int64)

    def tokens_by_step(self, steps: int) -> Integers:
        """Tokens delivered by each step: shape (steps,)."""
        return np.bincount(self.step, self.delivered, steps).astype(np.int64)

    def deliveries(self, step_ends: Integers) -> tuple[Integers, Integers]:
        """Each time at which one or more tokens came: (request, ns)."""
        some = self.delivered > 0
        return self.request[some], step_ends[self.step[some]]


def gaps(request: Integers, time: Integers) -> tuple[Integers, Integers]:
    """The times between consecutive deliveries of each request: (request, ns), from deliveries in any order."""
    order = np.lexsort((time, request))
    request, time = request[order], time[order]
    same = request[1:] == request[:-1]
    return request[1:][same], np.diff(time)[same]


def awaited_until(kind: Integers, request: Integers, value: Integers, requests: int, steps: int) -> Integers:
    """For each request, the step from which on its tokens are not delivered: shape (requests,)."""
    cut = np.isin(kind, (Kind.CANCELLED, Kind.TIMED_OUT, Kind.LOST))
    awaited = np.full(requests, steps)
    np.minimum.at(awaited, request[cut], value[cut])
    return awaited
