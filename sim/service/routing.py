"""A request on its way through a service (RoutedRequest), and routers (Router): what they decide by (Load)."""

from __future__ import annotations

from collections.abc import Sequence as Several
from typing import Literal, Protocol

from sim.log.events import Kind
from sim.request import WHOLE, Request
from sim.sequence import Sequence


class Load:
    """The load of a replica as a router sees it: what was sent there and has not ended.

    requests  number of requests
    tokens    their prompt tokens and the most tokens they may generate
    up        whether the replica takes requests: it has not failed
    """

    __slots__ = ("requests", "tokens", "up")

    def __init__(self) -> None:
        self.requests = 0
        self.tokens = 0
        self.up = True

    def add(self, request: Request, sign: int = 1) -> None:
        """A request was sent there (sign 1), or has ended (sign -1)."""
        self.requests += sign
        self.tokens += sign * (request.prompt + request.max_output)


class Router(Protocol):
    """Decides which replica a request goes to."""

    def choose(self, request: Request, loads: Several[Load], sent: int = 0) -> int:
        """The number of a replica that is up; called for every request that is sent, if any replica is up.

        loads  the load of each replica, in order of their numbers
        sent   how often the request has been sent to a replica before: in earlier attempts, to another pool, or to
               a replica that failed
        """


class First:
    """The router of a single replica."""

    def choose(self, request: Request, loads: Several[Load], sent: int = 0) -> int:
        """Number 0."""
        return 0


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

    __slots__ = ("admitted", "attempt", "ending", "fresh", "leg", "moves", "number", "over", "replica",
                 "request", "sent", "seq", "since", "state")  # fmt: skip

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
