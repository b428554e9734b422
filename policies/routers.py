"""Routers: which replica a request is sent to.

A router reads, for each replica, the requests and tokens in flight and whether the replica is up. No router chooses a
replica that has failed. Random choices use a stream named by the pool, the request's id and the number of earlier
attempts: they do not depend on other requests, and those of two pools or two attempts are independent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from random import Random

from policies.base.option_values import suggestion, whole
from sim.request import Request
from sim.service.cluster import Load, Router


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
    """A new router over `replicas` replicas by its name; `pool` names the pool where there are several.

    Raises ValueError, in one line, for an unknown name, an unknown option or an impossible value.
    """
    if name not in BUILDERS:
        raise ValueError(f"{name!r} is unknown; {suggestion(name, BUILDERS)}")
    rest = dict(options)
    router = BUILDERS[name](rest, seed, replicas, pool)
    if rest:
        raise ValueError(f"{name} has no option {next(iter(rest))!r}")
    return router


def weights(given: object, replicas: int) -> tuple[float, ...]:
    """The weights of the replicas. Raises ValueError unless there is a positive one for each."""
    numbers = given if isinstance(given, list | tuple) else ()
    fine = all(isinstance(n, int | float) and not isinstance(n, bool) and 0 < n < inf for n in numbers)
    if len(numbers) != replicas or not fine:
        raise ValueError(f"weights is {given!r}; expected {replicas} numbers above 0, one for each replica")
    return tuple(float(number) for number in numbers)


def count(options: dict[str, object], key: str, default: int) -> int:
    """Take a whole number of at least 0 from the options. Raises ValueError for any other value."""
    return whole(key, options.pop(key, default), least=0)


def one_of(options: dict[str, object], key: str, names: Sequence[str]) -> str:
    """Take one of `names` from the options, by default the first. Raises ValueError for any other value."""
    found = options.pop(key, names[0])
    if found not in names:
        raise ValueError(f"{key} is {found!r}; expected {' or '.join(names)}")
    return str(found)
