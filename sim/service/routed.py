"""A request on its way through a service."""

from __future__ import annotations

from typing import Literal

from sim.log.events import Kind
from sim.request import WHOLE, Request
from sim.sequence import Sequence


class RoutedRequest:
    """One request on its way through a service.

    number    its number in the service log
    attempt   the present attempt, counted from 0
    state     where it is: at its client, at a router (held), on a replica, between pools or replicas, or at its
              client again (retrying)
    leg       what the next engine, or the present one, does of it
    seq       its sequence on the replica it was sent to last, and the number of that (`replica`)
    ending    how the client, or a time-out, is ending it right now
    admitted  whether an engine has admitted it in this attempt
    fresh     its first `send` has not returned: the client sees an end by what that returns
    over      it has ended for its client
    since     when it began to wait at a router, ns
    moves     counts its transfers, so that a stale arrival is ignored
    sent      how often it has been sent to a replica
    """

    __slots__ = ("admitted", "attempt", "ending", "fresh", "leg", "moves", "number", "over", "replica", "request",
                 "sent", "seq", "since", "state")  # fmt: skip

    def __init__(self, request: Request, number: int) -> None:
        self.request = request
        self.number = number
        self.attempt = 0
        self.state: Literal["sent", "held", "on replica", "moving", "retrying"] = "sent"
        self.leg = WHOLE
        self.seq: Sequence | None = None
        self.replica = -1
        self.ending: Kind | None = None
        self.admitted = False
        self.fresh = True
        self.over = False
        self.since = 0
        self.moves = 0
        self.sent = 0
