"""What a synthetic workload is: how many requests or how long, when they arrive, how long they are, of whom.

Knows nothing of scenario files; `parser` does. Draws nothing; `generator` does.
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
    """Conversations whose prompts grow: what the arrivals and their rate count is then sessions.

    A session sends `turns` requests. Each prompt is all that was said before, prompts and outputs, and then the
    turn's own new tokens (the law `prompt`). The next turn arrives a think time after the arrival of the turn
    before it, however long its answer takes: an open-loop approximation. Think times are gamma-distributed with
    mean `think` (nanoseconds) and coefficient of variation `think_cv` (1 is exponential, 0 constant).

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
    """System prompts: `groups` of them, of `tokens` each, and every request (or session) begins with one.

    Group k is chosen with a weight of k^-skew: 0, the default, all alike, 1 the classical Zipf. The length of a
    group's prompt is drawn once.
    """

    groups: int
    tokens: Length
    skew: float = 0.0

    def __post_init__(self) -> None:
        whole_within("groups", self.groups, least=1, most=MOST_GROUPS)
        number_within("skew", self.skew, 0, 100)


@dataclass(frozen=True)
class Patience:
    """How long a client waits for the end of its answer before it gives up: exponential, of mean `lasts` (ns).

    A `share` of the requests (1, all, by default) are of such clients; the others wait for ever.
    """

    lasts: Nanoseconds
    share: float = 1.0

    def __post_init__(self) -> None:
        whole_within("lasts", self.lasts, least=1, most=LONGEST_THINK)
        number_within("share", self.share, 0, 1)


@dataclass(frozen=True)
class Crowd:
    """`tenants` tenants, called "1", "2", ..., all with the workload's laws; number k has weight k^-skew."""

    tenants: int
    skew: float = 1.0

    def __post_init__(self) -> None:
        whole_within("tenants", self.tenants, least=1, most=MOST_TENANTS)
        number_within("skew", self.skew, 0, 2)


@dataclass(frozen=True)
class Tenant:
    """One tenant. Its requests form an arrival process of their own, independent of every other tenant's.

    Either `weight` (default 1): the tenant's process has the workload's law at its share of the rate,
    weight / sum of the weights; or `arrivals`: a law and rate of its own, which no other tenant changes.
    Bursts are a tenant's own: the sum of several bursty tenants is smoother than each.
    The others default to the workload's. `prefixes` of its own are shared with no other tenant.
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
            raise BadInput("weight stands beside arrivals; expected one of the two")
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

    `prompt`, `output`, `correlation`, `sessions`, `prefixes` and `patience` are those of tenants without their own;
    so is `arrivals`, whose rate the tenants share by weight. A prompt is one token by default. Without tenants (by
    name, or a crowd of them) there is one, "default".

    `correlation` is that of the normal variables of a Gaussian copula behind prompt and output (-1 to 1): the
    rank correlation of the lengths is 6/pi x asin(correlation / 2), up to rounding. Without, they are independent.

    What prompts say is known where they share something, under sessions and prefixes: as blocks of
    `block_size` tokens (16 unless given).

    Raises BadInput, the offending field first, for a contradiction or a gap.
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
    crowd: Crowd | None = None

    def __post_init__(self) -> None:
        self._check_extent()
        if self.tenants and self.crowd is not None:
            raise BadInput("crowd stands beside tenants; expected one of the two")
        if self.correlation is not None:
            number_within("correlation", self.correlation, -1, 1)
        names = [tenant.name for tenant in self.tenants]
        for place, name in enumerate(names):
            if name in names[:place]:
                raise BadInput(f"tenants.{name} stands twice; expected one of each name")
        for tenant in self.tenants or (Tenant("default"),):
            self._check_tenant(tenant, f"tenants.{tenant.name}." if self.tenants else "")
        if self.arrivals is not None and self.tenants and not any(tenant.share for tenant in self.tenants):
            raise BadInput("arrivals is of no use: every tenant has its own; expected one of the two")
        if self.block_size is not None:
            whole_within("block_size", self.block_size, least=1)
            if not any(member.sessions or member.prefixes for member in self.members()):
                raise BadInput("block_size says nothing without sessions or prefixes; expected one of them")

    def members(self) -> list[Tenant]:
        """The tenants, a crowd's too, each with every law it has or takes from the workload, `arrivals` apart."""
        given = self.tenants or (Tenant("default"),)
        if self.crowd is not None:
            given = tuple(Tenant(str(k), k**-self.crowd.skew) for k in range(1, self.crowd.tenants + 1))
        return [
            replace(tenant, **{name: getattr(self, name) for name in INHERITED if getattr(tenant, name) is None})
            for tenant in given
        ]

    @property
    def named(self) -> bool:
        """Whether tenants are told apart."""
        return bool(self.tenants) or self.crowd is not None

    def _check_tenant(self, tenant: Tenant, place: str) -> None:
        if tenant.output is None and self.output is None:
            raise BadInput(f"{place}output is missing; expected a law of lengths")
        if tenant.arrivals is None and self.arrivals is None:
            raise BadInput("arrivals is missing; expected a law such as {poisson: {rate: 20}}")
        if isinstance(self.arrivals, AtOnce):
            if tenant.arrivals is not None:
                raise BadInput(f"{place}arrivals stands beside at_once for all; expected one of the two")
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
                raise BadInput("duration says nothing of arrivals at_once; expected requests")


def laws(tenant: Tenant) -> tuple[Length, Length]:
    """The laws of prompts and outputs of a member."""
    return cast(Length, tenant.prompt), cast(Length, tenant.output)
