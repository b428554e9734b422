"""Rate limits: every tenant has a token bucket, and a request is admitted when the bucket covers its cost.

A bucket holds at most `burst` tokens, is refilled at `rate` tokens per second and is full at the start. The cost of a
request, its prompt and predicted output tokens, is taken when it is first admitted; a request that costs more than
`burst` waits for a full bucket and leaves it negative. Services sell such limits as tokens per minute. They protect
from floods at any load, but also throttle a tenant while slots are free (booked as `limited`), which fair shares
do not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from policies.base.entry import Entry, Option
from policies.base.limiting_wrapper import LimitingWrapper
from policies.base.option_values import weight, whole
from policies.base.predicted_order import OPTIONS, name_of_predictor
from policies.predictors.base import Predictor
from policies.predictors.learned import LearnedPredictor
from policies.predictors.registry import predictor
from sim.policy.base import Order
from sim.request import SECOND, Nanoseconds
from sim.sequence import Sequence


@dataclass
class Bucket:
    """`tokens` at time `at`, refilled at `rate` tokens per nanosecond up to `burst`."""

    rate: Fraction
    burst: int
    tokens: Fraction
    at: Nanoseconds = 0

    def level(self, now: Nanoseconds) -> Fraction:
        """Tokens in the bucket at `now`."""
        return min(Fraction(self.burst), self.tokens + self.rate * (now - self.at))

    def covers_at(self, cost: int) -> Nanoseconds:
        """The first instant at which the bucket covers the cost if no tokens are taken before."""
        missing = min(cost, self.burst) - self.tokens
        return self.at + max(0, ceil(missing / self.rate))

    def take(self, cost: int, now: Nanoseconds) -> None:
        """Take the cost from the bucket, which may become negative."""
        self.tokens, self.at = self.level(now) - cost, now


class TenantRate(LimitingWrapper):
    """A bucket for every tenant; `tenants` gives some their own rate."""

    def __init__(
        self,
        order: Callable[[], Order],
        rate: Fraction,
        burst: int,
        tenants: Mapping[str, Fraction],
        predict: Predictor,
    ) -> None:
        """Rates are in tokens per second."""
        super().__init__(order)
        self.rate = rate
        self.burst = burst
        self.tenants = tenants
        self.predict = predict
        self.buckets: dict[str, Bucket] = {}
        self.costs: dict[int, int] = {}  # in tokens, of requests that have not been charged
        self.now: Nanoseconds = 0  # time of the last call of `head`, whose result is admitted next

    def push(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Join; the cost is predicted now."""
        self.costs[seq.index] = seq.request.prompt + int(self.predict(seq.request))
        tenant = self.group(seq)
        if tenant not in self.buckets:
            rate = self.tenants.get(tenant, self.rate)
            self.buckets[tenant] = Bucket(rate / SECOND, self.burst, Fraction(self.burst))
        super().push(seq, now, step)

    def may_go(self, seq: Sequence, now: Nanoseconds) -> bool:
        """Whether the tenant's bucket covers the cost; a request admitted before has been charged."""
        return seq.index not in self.costs or self.buckets[self.group(seq)].covers_at(self.costs[seq.index]) <= now

    def head(self, now: Nanoseconds, step: int) -> Sequence | None:
        """The first sequence whose tenant's bucket covers its cost."""
        self.now = now
        return super().head(now, step)

    def may_change(self, seq: Sequence, now: Nanoseconds) -> Nanoseconds | None:
        """When the tenant's bucket covers the cost, if it does not now."""
        if self.may_go(seq, now):
            return None
        return self.buckets[self.group(seq)].covers_at(self.costs[seq.index])

    def admitted(self, seq: Sequence, step: int) -> None:
        """Charge the cost, once."""
        cost = self.costs.pop(seq.index, 0)
        self.buckets[self.group(seq)].take(cost, self.now)
        super().admitted(seq, step)

    def left(self, seq: Sequence, step: int) -> None:
        """Notify a predictor that learns, and the wrapped order."""
        self.costs.pop(seq.index, None)
        if isinstance(self.predict, LearnedPredictor):
            self.predict.ended(seq)
        super().left(seq, step)


def make(
    seed: int,
    order: Callable[[], Order],
    rate: object,
    burst: object,
    tenants: object,
    predict: object,
    error: object,
) -> Order:
    """The limits over the order given. Raises ValueError for an impossible option."""
    if not isinstance(tenants, Mapping):
        raise ValueError(f"tenants is {tenants!r}; expected tenants with their rates")
    rates = {str(tenant): weight(f"tenants.{tenant}", own) for tenant, own in tenants.items()}
    found = predictor(predict, error, seed)
    return TenantRate(order, weight("rate", rate), whole("burst", burst), rates, found)


ENTRY = Entry(
    "No tenant above so many tokens a second, with bursts; then the order it wraps.",
    make,
    {"order": Option("fcfs", "order"), "rate": Option(1000), "burst": Option(4000), "tenants": Option({})} | OPTIONS,
    name_of_predictor,
)
