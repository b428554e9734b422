"""What a router decides by (Load), and what a router is (Router). Independent of replicas and of routers by name."""

from __future__ import annotations

from collections.abc import Sequence as Several
from typing import Protocol

from sim.request import Request


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
