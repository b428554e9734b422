"""Earliest deadline first.

A request's deadline is its arrival plus `within`, or plus the value in `tenants` for its tenant. With one deadline
for all requests the order is first come, first served. If all deadlines can be met on one preemptible server, the
earliest deadline first meets them (Liu and Layland 1973). Under overload it serves requests that are already late,
which makes more of them late: shed load before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from policies.base.entry import Entry, Option
from policies.base.option_values import duration
from sim.policy.base import Order, Rank, RankedOrder
from sim.request import SECOND, Nanoseconds
from sim.sequence import Sequence


@dataclass(frozen=True)
class Deadlines:
    """Time allowed from arrival: `within`, or what `tenants` gives the request's tenant."""

    within: Nanoseconds
    tenants: Mapping[str, Nanoseconds] = field(default_factory=dict)

    def of(self, seq: Sequence) -> Nanoseconds:
        """The request's deadline."""
        return seq.request.arrival + self.tenants.get(seq.request.tenant, self.within)


class EarliestDeadline(RankedOrder):
    """Ranked by deadline."""

    def __init__(self, deadlines: Deadlines) -> None:
        super().__init__()
        self.deadlines = deadlines

    def rank(self, seq: Sequence) -> Rank:
        """The deadline."""
        return (self.deadlines.of(seq),)


def deadlines(within: object, tenants: object) -> Deadlines:
    """Deadlines from the options. Raises ValueError for values that are not durations."""
    if not isinstance(tenants, Mapping):
        raise ValueError(f"tenants is {tenants!r}; expected tenants with their {{within: duration}}")
    promised = {}
    for tenant, promise in tenants.items():
        if not isinstance(promise, Mapping) or list(promise) != ["within"]:
            raise ValueError(f"tenants.{tenant} is {promise!r}; expected {{within: duration}}")
        promised[str(tenant)] = duration(f"tenants.{tenant}.within", promise["within"])
    return Deadlines(duration("within", within), promised)


def make(seed: int, within: object, tenants: object) -> Order:
    """An order by these deadlines; `seed` is not used. Raises ValueError for values that are not durations."""
    return EarliestDeadline(deadlines(within, tenants))


OPTIONS = {"within": Option(10 * SECOND, "duration"), "tenants": Option({}, times=("within",))}

ENTRY = Entry(
    "Earliest deadline first: arrival plus what its tenant was promised.",
    make,
    OPTIONS,
    source="Liu and Layland, Journal of the ACM 1973",
)
