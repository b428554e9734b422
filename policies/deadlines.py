"""Earliest deadline first, and least slack: the request that is in the most danger of being late goes first.

A deadline is the arrival plus `within`, or plus what `tenants` says for the request's tenant; with one deadline
for all, the earliest is first come, first served. If all deadlines can be met on one preemptible server, the
earliest first meets them (Liu and Layland 1973). Under overload it serves those who are late already, and more
become late: shed load before.

Slack is the time left for waiting: deadline - now - remaining tokens x token_time. All who wait lose slack
alike, so their order by slack is one of deadline - remaining tokens x token_time, which does not change while
they wait. Sound where the deadline is for the whole answer; for a first token the earliest deadline is right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from policies.entry import Entry, Option
from policies.predict import Predictor, predictor
from policies.predicted import OPTIONS, PredictedOrder, name_of_predictor
from sim.policy.base import Order, Rank, RankedOrder
from sim.request import SECOND, Nanoseconds, Sequence


@dataclass(frozen=True)
class Deadlines:
    """How long a request may take: `within`, or what its tenant was promised."""

    within: Nanoseconds
    tenants: Mapping[str, Nanoseconds] = field(default_factory=dict)

    def of(self, seq: Sequence) -> Nanoseconds:
        """The instant by which the request should be served."""
        return seq.request.arrival + self.tenants.get(seq.request.tenant, self.within)


class EarliestDeadline(RankedOrder):
    """Ranked by deadline."""

    def __init__(self, deadlines: Deadlines) -> None:
        super().__init__()
        self.deadlines = deadlines

    def rank(self, seq: Sequence) -> Rank:
        """The deadline."""
        return (self.deadlines.of(seq),)


class LeastSlack(PredictedOrder):
    """Ranked by the latest instant at which a request may start to generate what remains."""

    def __init__(self, deadlines: Deadlines, token_time: Nanoseconds, predict: Predictor) -> None:
        super().__init__(predict)
        self.deadlines = deadlines
        self.token_time = token_time

    def rank(self, seq: Sequence) -> Rank:
        """Deadline less the predicted time of the tokens to come."""
        return (self.deadlines.of(seq) - self.remaining(seq) * self.token_time,)


def deadlines(within: object, tenants: object) -> Deadlines:
    """What the options say. Raises ValueError for what is no duration."""
    if not isinstance(tenants, Mapping):
        raise ValueError(f"tenants is {tenants!r}; expected tenants with their {{within: duration}}")
    promised = {}
    for tenant, promise in tenants.items():
        if not isinstance(promise, Mapping) or list(promise) != ["within"]:
            raise ValueError(f"tenants.{tenant} is {promise!r}; expected {{within: duration}}")
        promised[str(tenant)] = duration(f"tenants.{tenant}.within", promise["within"])
    return Deadlines(duration("within", within), promised)


def duration(name: str, value: object) -> Nanoseconds:
    """`value` if it is a time of 0 ns or more; raises ValueError otherwise."""
    if isinstance(value, bool) or not isinstance(value, Nanoseconds) or value < 0:
        raise ValueError(f"{name} is {value!r}; expected a duration")
    return value


def make_earliest(seed: int, within: object, tenants: object) -> Order:
    """It draws nothing. Raises ValueError for what is no deadline."""
    return EarliestDeadline(deadlines(within, tenants))


def make_slack(
    seed: int, within: object, tenants: object, token_time: object, predict: object, error: object
) -> Order:
    """By these deadlines and the predictor asked for. Raises ValueError for options that make no sense."""
    return LeastSlack(deadlines(within, tenants), duration("token_time", token_time), predictor(predict, error, seed))


PROMISES = {"within": Option(10 * SECOND, "duration"), "tenants": Option({}, times=("within",))}

EARLIEST = Entry(
    "Earliest deadline first: arrival plus what its tenant was promised.",
    make_earliest,
    PROMISES,
    source="Liu and Layland, Journal of the ACM 1973",
)
SLACK = Entry(
    "Least slack first: the time to the deadline less the predicted time of the tokens to come.",
    make_slack,
    PROMISES | {"token_time": Option(SECOND // 50, "duration")} | OPTIONS,
    name_of_predictor,
)
