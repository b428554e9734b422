"""The specification of a synthetic workload: its extent, arrivals, lengths, tenants, sessions and prefixes.

`parser` reads it from a scenario; `generator` draws requests from it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import cast

from sim.request import Nanoseconds
from traces.errors import BadInput, number_within, shown, whole_within
from traces.limits import LATEST
from traces.synthetic.arrivals import Arrivals, AtOnce
from traces.synthetic.lengths import Fixed
from traces.synthetic.token_counts import Length

MOST_REQUESTS = 10**9
MOST_TENANTS = 10**4
MOST_GROUPS = 10**5
LONGEST_THINK: Nanoseconds = 10**15
ONE_TOKEN = Fixed(1)
DEFAULT_BLOCK_SIZE = 16


@dataclass(frozen=True)
class Sessions:
    """Multi-turn sessions with growing prompts; the workload's arrivals and rate are then those of sessions.

    A session sends `turns` requests. Each prompt consists of all earlier prompts and outputs of the session and the
    turn's own new tokens (the law `prompt`). The next turn arrives a think time after the arrival of the turn before
    it, whenever the answer ends: an open-loop approximation. Think times are gamma-distributed with mean `think`
    (nanoseconds) and coefficient of variation `think_cv` (1 is exponential, 0 constant).

    With a `context`, a session ends before the turn whose prompt and output together would exceed it.
    """

    turns: Length
    think: Nanoseconds
    think_cv: float = 1.0
    context: int | None = None

    def __post_init__(self) -> None:
        whole_within("think", self.think, least=0, most=LONGEST_THINK)
        if self.think_cv:
            number_within("think_cv", self.think_cv, 0.01, 10)
        if self.context is not None:
            whole_within("context", self.context, least=2)


@dataclass(frozen=True)
class Prefixes:
    """Shared system prompts: every request (or session) begins with one of `groups` prompts of `tokens` tokens.

    Group k has weight k^-skew: 0, the default, is uniform, 1 is the classical Zipf law. The length of each group's
    prompt is drawn once.
    """

    groups: int
    tokens: Length
    skew: float = 0.0

    def __post_init__(self) -> None:
        whole_within("groups", self.groups, least=1, most=MOST_GROUPS)
        number_within("skew", self.skew, 0, 100)


@dataclass(frozen=True)
class Patience:
    """Time after which a client cancels its request if it has not ended: exponential, of mean `lasts` (ns).

    Applies to a `share` of the requests (1, all, by default); the others are never cancelled.
    """

    lasts: Nanoseconds
    share: float = 1.0

    def __post_init__(self) -> None:
        whole_within("lasts", self.lasts, least=1, most=LONGEST_THINK)
        number_within("share", self.share, 0, 1)


@dataclass(frozen=True)
class Population:
    """`tenants` tenants, named "1", "2", ..., with the workload's laws; tenant k has weight k^-skew."""

    tenants: int
    skew: float = 1.0

    def __post_init__(self) -> None:
        whole_within("tenants", self.tenants, least=1, most=MOST_TENANTS)
        number_within("skew", self.skew, 0, 2)


@dataclass(frozen=True)
class Tenant:
    """One tenant. Its requests form an arrival process of their own, independent of every other tenant's.

    With `weight` (default 1) the process has the workload's law at its share of the rate, weight / sum of the
    weights; with `arrivals` it has a law and rate of its own. Tenants burst independently, so the sum of several
    bursty tenants is smoother than each. The other fields default to the workload's. A tenant's own `prefixes` are
    not shared with other tenants.
    """

    name: str
    weight: float | None = None
    arrivals: Arrivals | None = None
    prompt: Length | None = None
    output: Length | None = None
    correlation: float | None = None
    sessions: Sessions | None = None
    prefixes: Prefixes | None = None
    patience: Patience | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise BadInput(f"name is {shown(self.name)}; expected text")
        if isinstance(self.arrivals, AtOnce):
            raise BadInput("arrivals is at_once; expected a law with a rate (at_once is for all tenants)")
        if self.weight is not None and self.arrivals is not None:
            raise BadInput("weight is given beside arrivals; expected one of the two")
        if self.weight is not None:
            number_within("weight", self.weight, 1e-9, 1e9)
        if self.correlation is not None:
            number_within("correlation", self.correlation, -1, 1)

    @property
    def share(self) -> float:
        """The weight, 1 when not given, 0 for a tenant with arrivals of its own."""
        if self.arrivals is not None:
            return 0.0
        return 1.0 if self.weight is None else self.weight


INHERITED = tuple(field.name for field in fields(Tenant) if field.name not in ("name", "weight", "arrivals"))


@dataclass(frozen=True, kw_only=True)
class Synthetic:
    """A synthetic workload of the first `requests` requests, or of those before `duration` nanoseconds.

    `prompt`, `output`, `correlation`, `sessions`, `prefixes` and `patience` apply to tenants without their own; so
    does `arrivals`, whose rate the tenants share by weight. A prompt is one token by default. Without `tenants` and
    `population` (many similar tenants) there is one tenant, "default".

    `correlation` is that of the normal variables of a Gaussian copula of prompt and output (-1 to 1): the rank
    correlation of the lengths is 6/pi x asin(correlation / 2), up to rounding. Without, they are independent.

    With sessions or prefixes, prompts have block ids, of blocks of `block_size` tokens (16 unless given).

    Raises BadInput, which begins with the field's name, for contradictory or missing fields.
    """

    requests: int | None = None
    duration: Nanoseconds | None = None
    arrivals: Arrivals | AtOnce | None = None
    prompt: Length = ONE_TOKEN
    output: Length | None = None
    correlation: float | None = None
    sessions: Sessions | None = None
    prefixes: Prefixes | None = None
    patience: Patience | None = None
    block_size: int | None = None
    tenants: tuple[Tenant, ...] = ()
    population: Population | None = None

    def __post_init__(self) -> None:
        self._check_extent()
        if self.tenants and self.population is not None:
            raise BadInput("population is given beside tenants; expected one of the two")
        if self.correlation is not None:
            number_within("correlation", self.correlation, -1, 1)
        names = [tenant.name for tenant in self.tenants]
        for place, name in enumerate(names):
            if name in names[:place]:
                raise BadInput(f"tenants.{name} is given twice; expected one of each name")
        for tenant in self.tenants or (Tenant("default"),):
            self._check_tenant(tenant, f"tenants.{tenant.name}." if self.tenants else "")
        if self.arrivals is not None and self.tenants and not any(tenant.share for tenant in self.tenants):
            raise BadInput("arrivals is given although every tenant has its own; expected one of the two")
        if self.block_size is not None:
            whole_within("block_size", self.block_size, least=1)
            if not any(member.sessions or member.prefixes for member in self.members()):
                raise BadInput("block_size is given without sessions or prefixes; expected one of them")

    def members(self) -> list[Tenant]:
        """All tenants, those of `population` too, each with its own laws or the workload's (except `arrivals`)."""
        given = self.tenants or (Tenant("default"),)
        if self.population is not None:
            given = tuple(Tenant(str(k), k**-self.population.skew) for k in range(1, self.population.tenants + 1))
        return [
            replace(tenant, **{name: getattr(self, name) for name in INHERITED if getattr(tenant, name) is None})
            for tenant in given
        ]

    @property
    def named(self) -> bool:
        """Whether the workload has named tenants."""
        return bool(self.tenants) or self.population is not None

    def _check_tenant(self, tenant: Tenant, place: str) -> None:
        if tenant.output is None and self.output is None:
            raise BadInput(f"{place}output is missing; expected a law of lengths")
        if tenant.arrivals is None and self.arrivals is None:
            raise BadInput("arrivals is missing; expected a law such as {poisson: {rate: 20}}")
        if isinstance(self.arrivals, AtOnce):
            if tenant.arrivals is not None:
                raise BadInput(f"{place}arrivals is given beside at_once for all; expected one of the two")
            if tenant.sessions or self.sessions:
                raise BadInput("sessions need arrivals with a rate; found at_once")

    def _check_extent(self) -> None:
        if (self.requests is None) == (self.duration is None):
            found = "missing" if self.requests is None else "given beside duration"
            raise BadInput(f"requests is {found}; expected either requests or duration")
        if self.requests is not None:
            whole_within("requests", self.requests, 1, MOST_REQUESTS)
        if self.duration is not None:
            whole_within("duration", self.duration, 1, LATEST)
            if isinstance(self.arrivals, AtOnce):
                raise BadInput("duration is given with arrivals at_once; expected requests")


def laws(tenant: Tenant) -> tuple[Length, Length]:
    """The laws of prompts and outputs of a tenant from `members`."""
    return cast(Length, tenant.prompt), cast(Length, tenant.output)
