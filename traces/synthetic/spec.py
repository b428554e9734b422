"""What a synthetic workload is: how many requests or how long, when they arrive, how long they are, of whom.

Knows nothing of scenario files; `parser` does. Draws nothing; `generator` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from sim.request import Nanoseconds
from traces.errors import BadInput, number_within, shown, whole_within
from traces.limits import LATEST
from traces.synthetic.arrivals import Arrivals, AtOnce
from traces.synthetic.lengths import Fixed, Length

MOST_REQUESTS = 10**9
ONE_TOKEN = Fixed(1)


@dataclass(frozen=True)
class Tenant:
    """One tenant. Its requests form an arrival process of their own, independent of every other tenant's.

    Either `weight` (default 1): the tenant's process has the workload's law at its share of the rate,
    weight / sum of the weights; or `arrivals`: a law and rate of its own, which no other tenant changes.
    Bursts are a tenant's own: the sum of several bursty tenants is smoother than each.
    `prompt` and `output` default to the workload's.
    """

    name: str
    weight: float | None = None
    arrivals: Arrivals | None = None
    prompt: Length | None = None
    output: Length | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise BadInput(f"name is {shown(self.name)}; expected text")
        if isinstance(self.arrivals, AtOnce):
            raise BadInput("arrivals is at_once; expected a law with a rate (at_once is for all tenants)")
        if self.weight is not None and self.arrivals is not None:
            raise BadInput("weight stands beside arrivals; expected one of the two")
        if self.weight is not None:
            number_within("weight", self.weight, 1e-9, 1e9)

    @property
    def share(self) -> float:
        """The weight, 1 when not given, 0 for a tenant with arrivals of its own."""
        if self.arrivals is not None:
            return 0.0
        return 1.0 if self.weight is None else self.weight


@dataclass(frozen=True, kw_only=True)
class Synthetic:
    """A synthetic workload of the first `requests` requests, or of those before `duration` nanoseconds.

    `prompt` and `output` are the laws of tenants without their own; so is `arrivals`, whose rate the
    tenants share by weight. A prompt is one token by default. Without tenants there is one, "default".

    Raises BadInput, the offending field first, for a contradiction or a gap.
    """

    requests: int | None = None
    duration: Nanoseconds | None = None
    arrivals: Arrivals | AtOnce | None = None
    prompt: Length = ONE_TOKEN
    output: Length | None = None
    tenants: tuple[Tenant, ...] = ()

    def __post_init__(self) -> None:
        self._check_extent()
        names = [tenant.name for tenant in self.tenants]
        for place, name in enumerate(names):
            if name in names[:place]:
                raise BadInput(f"tenants.{name} stands twice; expected one of each name")
        for tenant in self.tenants or (Tenant("default"),):
            place_of = f"tenants.{tenant.name}." if self.tenants else ""
            if tenant.output is None and self.output is None:
                raise BadInput(f"{place_of}output is missing; expected a law of lengths")
            if tenant.arrivals is None and self.arrivals is None:
                raise BadInput("arrivals is missing; expected a law such as {poisson: {rate: 20}}")
            if tenant.arrivals is not None and isinstance(self.arrivals, AtOnce):
                raise BadInput(f"{place_of}arrivals stands beside at_once for all; expected one of the two")
        if self.arrivals is not None and self.tenants and not any(tenant.share for tenant in self.tenants):
            raise BadInput("arrivals is of no use: every tenant has its own; expected one of the two")

    def lengths_of(self, tenant: Tenant) -> tuple[Length, Length]:
        """The laws of the tenant's prompts and outputs: its own where it has them, else the workload's."""
        return tenant.prompt or self.prompt, cast(Length, tenant.output or self.output)

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
