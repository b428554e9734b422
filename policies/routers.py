"""Routers: which replica a request goes to. Each knows what was sent where and has not ended, and who is up.

None sends to a replica that has failed. Every draw has a stream of its own, named by the pool, the request's id and
how often that has been sent before: it depends on no other request, and the draws of two pools, or of two attempts,
are independent. Knows nothing of engines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from math import inf
from random import Random

from sim.request import Request
from sim.service.cluster import Load, Router


def alive(loads: Sequence[Load]) -> list[int]:
    """The replicas that are up."""
    return [number for number, load in enumerate(loads) if load.up]


def least(loads: Sequence[Load], among: Sequence[int]) -> int:
    """The one of these replicas with the fewest requests, the first of equals."""
    return min(among, key=lambda number: loads[number].requests)


def stream(seed: int, pool: str, request: Request, sent: int) -> Random:
    """What is drawn for a request that a router has to send, after it was sent so often before."""
    kind = ".".join(["router", *([pool] if pool else []), *([str(sent)] if sent else [])])
    return Random(f"{seed}/{kind}/{request.id}")


@dataclass
class RoundRobin:
    """One after the other, whatever they have to do: fair to replicas, blind to long requests."""

    turn: int = -1

    def choose(self, request: Request, loads: Sequence[Load], sent: int = 0) -> int:
        """The next after the last that is up."""
        self.turn = (self.turn + 1) % len(loads)
        while not loads[self.turn].up:
            self.turn = (self.turn + 1) % len(loads)
        return self.turn


@dataclass(frozen=True)
class Uniform:
    """Any, by lot: what a stateless balancer does."""

    seed: int
    pool: str = ""

    def choose(self, request: Request, loads: Sequence[Load], sent: int = 0) -> int:
        """One drawn for this request."""
        up = alive(loads)
        return up[stream(self.seed, self.pool, request, sent).randrange(len(up))]


@dataclass(frozen=True)
class LeastRequests:
    """The one with the fewest requests: good when requests are alike."""

    def choose(self, request: Request, loads: Sequence[Load], sent: int = 0) -> int:
        """The fewest requests, the first of equals."""
        return least(loads, alive(loads))


@dataclass(frozen=True)
class LeastTokens:
    """The one with the fewest tokens asked of it, prompts and declared maximum outputs: for requests that differ."""

    def choose(self, request: Request, loads: Sequence[Load], sent: int = 0) -> int:
        """The fewest tokens, the first of equals."""
        return min(alive(loads), key=lambda number: loads[number].tokens)


@dataclass(frozen=True)
class PowerOfTwo:
    """The less loaded of two drawn by lot: nearly as good as knowing all, at two questions a request."""

    seed: int
    pool: str = ""

    def choose(self, request: Request, loads: Sequence[Load], sent: int = 0) -> int:
        """The one of the two with fewer requests."""
        up = alive(loads)
        both = stream(self.seed, self.pool, request, sent).sample(up, min(2, len(up)))
        return least(loads, sorted(both))


@dataclass
class Weighted:
    """In proportion to weights, one for each replica, as evenly in time as whole requests allow."""

    weights: tuple[float, ...]
    credit: list[float] = field(default_factory=list)

    def choose(self, request: Request, loads: Sequence[Load], sent: int = 0) -> int:
        """The one that is owed most, the first of equals; nothing is owed to those that are down.

        Raises ValueError unless there is a weight for each.
        """
        if len(self.weights) != len(loads):
            raise ValueError(
                f"there are {len(self.weights)} weights for {len(loads)} replicas; expected one for each"
            )
        self.credit = self.credit or [0.0] * len(loads)
        up = alive(loads)
        for number in up:
            self.credit[number] += self.weights[number]
        chosen = max(up, key=lambda number: self.credit[number])
        self.credit[chosen] -= sum(self.weights[number] for number in up)
        return chosen


@dataclass
class Sticky:
    """All requests of a tenant, or of a session, to the same replica: the least loaded one when its first one comes.

    It moves when that replica is down. A request without session has no home.
    """

    by: str = "tenant"
    home: dict[str, int] = field(default_factory=dict)

    def choose(self, request: Request, loads: Sequence[Load], sent: int = 0) -> int:
        """Where the tenant, or the session, is at home."""
        whose = request.tenant if self.by == "tenant" else request.session
        chosen = self.home.get(whose, -1)
        if chosen < 0 or not loads[chosen].up:
            chosen = least(loads, alive(loads))
        if whose:
            self.home[whose] = chosen
        return chosen


@dataclass
class PrefixAffinity:
    """Where a request with the same beginning went last, so that it finds its pages; else the fewest requests.

    A beginning is the first block of a prompt given in blocks, or its first `tokens` tokens. A replica that has
    more than `tolerance` requests more than the least loaded one is passed over.
    """

    tokens: int
    tolerance: int
    last: dict[object, int] = field(default_factory=dict)

    def choose(self, request: Request, loads: Sequence[Load], sent: int = 0) -> int:
        """The replica that saw this beginning last, unless it is too busy."""
        emptiest = least(loads, alive(loads))
        beginning = self.beginning(request)
        chosen = self.last.get(beginning, emptiest)
        if not loads[chosen].up or loads[chosen].requests > loads[emptiest].requests + self.tolerance:
            chosen = emptiest
        if beginning is not None:
            self.last[beginning] = chosen
        return chosen

    def beginning(self, request: Request) -> object:
        """What a request has in common with those that share its first pages; None if nothing is known of it."""
        if request.tokens is not None:
            return request.tenant, request.adapter, request.tokens[: self.tokens]
        if request.blocks:
            return request.tenant, request.adapter, request.blocks[0]
        return None


Options = dict[str, object]

BUILDERS: dict[str, Callable[[Options, int, int, str], Router]] = {
    "round_robin": lambda options, seed, replicas, pool: RoundRobin(),
    "random": lambda options, seed, replicas, pool: Uniform(seed, pool),
    "least_requests": lambda options, seed, replicas, pool: LeastRequests(),
    "least_tokens": lambda options, seed, replicas, pool: LeastTokens(),
    "power_of_two": lambda options, seed, replicas, pool: PowerOfTwo(seed, pool),
    "weighted": lambda options, seed, replicas, pool: Weighted(weights(options.pop("weights", None), replicas)),
    "sticky": lambda options, seed, replicas, pool: Sticky(one_of(options, "by", ("tenant", "session"))),
    "prefix": lambda options, seed, replicas, pool: PrefixAffinity(
        count(options, "tokens", 16), count(options, "tolerance", 8)
    ),
}


def build(name: str, options: Mapping[str, object], seed: int, replicas: int, pool: str = "") -> Router:
    """A fresh router of so many replicas by its name; `pool` is what they are called, where there are several pools.

    Raises ValueError, in one line, for an unknown name, an unknown option or an impossible value.
    """
    if name not in BUILDERS:
        near = get_close_matches(name, BUILDERS, n=1)
        raise ValueError(
            f"{name!r} is unknown; " + (f"did you mean {near[0]}?" if near else f"known are {', '.join(BUILDERS)}")
        )
    rest = dict(options)
    router = BUILDERS[name](rest, seed, replicas, pool)
    if rest:
        raise ValueError(f"{name} has no option {next(iter(rest))!r}")
    return router


def weights(given: object, replicas: int) -> tuple[float, ...]:
    """One positive weight for each replica. Raises ValueError for anything else."""
    numbers = given if isinstance(given, list | tuple) else ()
    fine = all(isinstance(n, int | float) and not isinstance(n, bool) and 0 < n < inf for n in numbers)
    if len(numbers) != replicas or not fine:
        raise ValueError(f"weights is {given!r}; expected {replicas} numbers above 0, one for each replica")
    return tuple(float(number) for number in numbers)


def count(options: dict[str, object], key: str, default: int) -> int:
    """A whole number of at least 0 among the options. Raises ValueError for anything else."""
    found = options.pop(key, default)
    if isinstance(found, bool) or not isinstance(found, int) or found < 0:
        raise ValueError(f"{key} is {found!r}; expected a whole number of at least 0")
    return found


def one_of(options: dict[str, object], key: str, names: Sequence[str]) -> str:
    """One of these names among the options, the first if none is given. Raises ValueError for anything else."""
    found = options.pop(key, names[0])
    if found not in names:
        raise ValueError(f"{key} is {found!r}; expected {' or '.join(names)}")
    return str(found)
