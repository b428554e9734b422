"""Routers: which replica a request is sent to. A new one is its file and a line in ROUTERS.

A router reads, for each replica, the requests and tokens in flight and whether the replica is up. No router chooses a
replica that has failed. Random choices use a stream named by the pool, the request's id and the number of earlier
attempts: they do not depend on other requests, and those of two pools or two attempts are independent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from random import Random

from policies.base import choices
from policies.base.choices import Reader
from policies.base.entry import Choice, Option
from policies.base.option_values import whole
from sim.registry import Registry
from sim.request import Request
from sim.service.routing import Load, Router


def alive(loads: Sequence[Load]) -> list[int]:
    """Indices of the replicas that are up."""
    return [number for number, load in enumerate(loads) if load.up]


def least(loads: Sequence[Load], among: Sequence[int]) -> int:
    """The index in `among` with the fewest requests in flight; ties go to the first."""
    return min(among, key=lambda number: loads[number].requests)


def stream(seed: int, pool: str, request: Request, sent: int) -> Random:
    """The random stream for sending a request that has been sent `sent` times before."""
    kind = ".".join(["router", *([pool] if pool else []), *([str(sent)] if sent else [])])
    return Random(f"{seed}/{kind}/{request.id}")


@dataclass
class RoundRobin:
    """Replicas in turn, whatever their load: equal numbers of requests, unequal work where requests differ."""

    turn: int = -1

    def choose(self, request: Request, loads: Sequence[Load], sent: int = 0) -> int:
        """The next replica in turn that is up."""
        self.turn = (self.turn + 1) % len(loads)
        while not loads[self.turn].up:
            self.turn = (self.turn + 1) % len(loads)
        return self.turn


@dataclass(frozen=True)
class Uniform:
    """A replica at random, as a stateless load balancer does."""

    seed: int
    pool: str = ""

    def choose(self, request: Request, loads: Sequence[Load], sent: int = 0) -> int:
        """A replica drawn uniformly from those that are up."""
        up = alive(loads)
        return up[stream(self.seed, self.pool, request, sent).randrange(len(up))]


@dataclass(frozen=True)
class LeastRequests:
    """The replica with the fewest requests in flight: good when requests are alike."""

    def choose(self, request: Request, loads: Sequence[Load], sent: int = 0) -> int:
        """The replica with the fewest requests; ties go to the first."""
        return least(loads, alive(loads))


@dataclass(frozen=True)
class LeastTokens:
    """The replica with the fewest tokens in flight (prompts and declared maximum outputs): for unequal requests."""

    def choose(self, request: Request, loads: Sequence[Load], sent: int = 0) -> int:
        """The replica with the fewest tokens; ties go to the first."""
        return min(alive(loads), key=lambda number: loads[number].tokens)


@dataclass(frozen=True)
class PowerOfTwo:
    """The less loaded of two replicas drawn at random: nearly as good as the least loaded of all."""

    seed: int
    pool: str = ""

    def choose(self, request: Request, loads: Sequence[Load], sent: int = 0) -> int:
        """The replica with fewer requests of the two drawn."""
        up = alive(loads)
        both = stream(self.seed, self.pool, request, sent).sample(up, min(2, len(up)))
        return least(loads, sorted(both))


@dataclass
class Weighted:
    """Smooth weighted round robin: requests in proportion to weights, one for each replica."""

    weights: tuple[float, ...]
    credit: list[float] = field(default_factory=list)

    def choose(self, request: Request, loads: Sequence[Load], sent: int = 0) -> int:
        """The replica with the most credit; ties go to the first. Replicas that are down gain no credit.

        Raises ValueError unless there is one weight for each replica.
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
    """All requests of a tenant, or of a session, to one replica: the least loaded when the first request arrives.

    A new replica is chosen when that one is down. A request without a session goes to the least loaded replica.
    """

    by: str = "tenant"
    assigned: dict[str, int] = field(default_factory=dict)

    def choose(self, request: Request, loads: Sequence[Load], sent: int = 0) -> int:
        """The replica of the request's tenant or session."""
        whose = request.tenant if self.by == "tenant" else request.session
        chosen = self.assigned.get(whose, -1)
        if chosen < 0 or not loads[chosen].up:
            chosen = least(loads, alive(loads))
        if whose:
            self.assigned[whose] = chosen
        return chosen


@dataclass
class PrefixAffinity:
    """The replica to which the last request with the same prefix was sent; else the one with the fewest requests.

    The prefix is the first block of a prompt given in blocks, or its first `tokens` tokens. A replica with over
    `tolerance` requests more than the least loaded one is not chosen.
    """

    tokens: int
    tolerance: int
    last: dict[object, int] = field(default_factory=dict)

    def choose(self, request: Request, loads: Sequence[Load], sent: int = 0) -> int:
        """The last replica of this prefix, unless it is down or too loaded."""
        emptiest = least(loads, alive(loads))
        prefix = self.prefix(request)
        chosen = self.last.get(prefix, emptiest)
        if not loads[chosen].up or loads[chosen].requests > loads[emptiest].requests + self.tolerance:
            chosen = emptiest
        if prefix is not None:
            self.last[prefix] = chosen
        return chosen

    def prefix(self, request: Request) -> object:
        """The key of a request's prefix; None if its prompt's content is not given."""
        if request.tokens is not None:
            return request.tenant, request.adapter, request.tokens[: self.tokens]
        if request.blocks:
            return request.tenant, request.adapter, request.blocks[0]
        return None


def weighted(seed: int, replicas: int, pool: str, weights: object) -> Router:
    """Weighted round robin. Raises ValueError unless there is a positive weight for each replica."""
    numbers = weights if isinstance(weights, list | tuple) else ()
    fine = all(isinstance(n, int | float) and not isinstance(n, bool) and 0 < n < inf for n in numbers)
    if len(numbers) != replicas or not fine:
        raise ValueError(f"weights is {weights!r}; expected {replicas} numbers above 0, one for each replica")
    return Weighted(tuple(float(number) for number in numbers))


def sticky(seed: int, replicas: int, pool: str, by: object) -> Router:
    """A replica for each tenant or session. Raises ValueError for any other `by`."""
    if by not in ("tenant", "session"):
        raise ValueError(f"by is {by!r}; expected tenant or session")
    return Sticky(str(by))


def prefix(seed: int, replicas: int, pool: str, tokens: object, tolerance: object) -> Router:
    """Affinity by prefixes. Raises ValueError for numbers below 0."""
    return PrefixAffinity(whole("tokens", tokens, least=0), whole("tolerance", tolerance, least=0))


ROUND_ROBIN = Choice("Replicas in turn, whatever their load.", lambda seed, replicas, pool: RoundRobin())
WEIGHTED = Choice("Requests in proportion to weights, one for each replica.", weighted, {"weights": Option(None)})
STICKY = Choice("All requests of a tenant, or of a session, to one replica.", sticky, {"by": Option("tenant")})
PREFIX = Choice(
    "The replica to which the last request with the same prefix was sent, unless it is too loaded.",
    prefix,
    {"tokens": Option(16), "tolerance": Option(8)},
)

ROUTERS: Registry[Choice[Router]] = Registry(
    "router",
    "slotstep.routers",
    {
        "round_robin": "policies.routers:ROUND_ROBIN",
        "random": "policies.routers:Uniform",
        "least_requests": "policies.routers:LeastRequests",
        "least_tokens": "policies.routers:LeastTokens",
        "power_of_two": "policies.routers:PowerOfTwo",
        "weighted": "policies.routers:WEIGHTED",
        "sticky": "policies.routers:STICKY",
        "prefix": "policies.routers:PREFIX",
    },
    Reader[Choice[Router]](
        Choice, "a class with choose, or a Choice", methods=("choose",), known=("seed", "replicas", "pool")
    ),
)


def build(name: str, options: Mapping[str, object], seed: int, replicas: int, pool: str = "") -> Router:
    """A new router over `replicas` replicas by its name; `pool` names the pool where there are several.

    Raises ValueError, in one line, for an unknown name, an unknown option or an impossible value.
    """
    return choices.build(ROUTERS, name, options, seed=seed, replicas=replicas, pool=pool)
