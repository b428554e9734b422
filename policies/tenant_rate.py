"""Rate limits: every tenant has a token bucket, and a request goes when the bucket can pay for it.

A bucket holds `burst` tokens at most, fills at `rate` tokens a second and is full at first. A request costs its
prompt and its predicted output when it is first admitted; one that costs more than a full bucket waits for a full
one and leaves a debt. What services sell as tokens per minute. It protects from floods whatever the load; but it
throttles when there is nobody else too (booked as `limited`), which fair shares do not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from policies.entry import Entry, Option
from policies.history import History
from policies.limited import Limited, whole
from policies.predict import Predictor, predictor
from policies.predicted import OPTIONS, name_of_predictor
from policies.service import weight
from sim.policy.base import Order
from sim.request import SECOND, Nanoseconds, Sequence


@dataclass
class Bucket:
    """Tokens at an instant, which grow by `rate` a nanosecond up to `burst`."""

    rate: Fraction
    burst: int
    tokens: Fraction
    at: Nanoseconds = 0

    def level(self, now: Nanoseconds) -> Fraction:
        """Tokens in it now."""
        return min(Fraction(self.burst), self.tokens + self.rate * (now - self.at))

    def holds(self, cost: int) -> Nanoseconds:
        """The first instant at which it can pay, if nobody else takes any."""
        missing = min(cost, self.burst) - self.tokens
        return self.at + max(0, ceil(missing / self.rate))

    def take(self, cost: int, now: Nanoseconds) -> None:
        """Pay, into debt if need be."""
        self.tokens, self.at = self.level(now) - cost, now


class TenantRate(Limited):
    """A bucket for every tenant; `tenants` gives some a rate of their own."""

    def __init__(
        self,
        order: Callable[[], Order],
        rate: Fraction,
        burst: int,
        tenants: Mapping[str, Fraction],
        predict: Predictor,
    ) -> None:
        """Rates are in tokens a second."""
        super().__init__(order)
        self.rate = rate
        self.burst = burst
        self.tenants = tenants
        self.predict = predict
        self.buckets: dict[str, Bucket] = {}
        self.costs: dict[int, int] = {}  # of those who have not paid
        self.now: Nanoseconds = 0  # when the head was asked for last: it is who is admitted next

    def push(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Join; what it will cost is predicted now."""
        self.costs[seq.index] = seq.request.prompt + int(self.predict(seq.request))
        tenant = self.group(seq)
        if tenant not in self.buckets:
            rate = self.tenants.get(tenant, self.rate)
            self.buckets[tenant] = Bucket(rate / SECOND, self.burst, Fraction(self.burst))
        super().push(seq, now, step)

    def may_go(self, seq: Sequence, now: Nanoseconds) -> bool:
        """Whether the tenant's bucket can pay; one that was admitted before has paid."""
        return seq.index not in self.costs or self.buckets[self.group(seq)].holds(self.costs[seq.index]) <= now

    def head(self, now: Nanoseconds, step: int) -> Sequence | None:
        """The first whose tenant can pay."""
        self.now = now
        return super().head(now, step)

    def may_change(self, seq: Sequence, now: Nanoseconds) -> Nanoseconds | None:
        """When the tenant's bucket holds enough, if it does not now."""
        if self.may_go(seq, now):
            return None
        return self.buckets[self.group(seq)].holds(self.costs[seq.index])

    def admitted(self, seq: Sequence, step: int) -> None:
        """Pay, once."""
        cost = self.costs.pop(seq.index, 0)
        self.buckets[self.group(seq)].take(cost, self.now)
        super().admitted(seq, step)

    def left(self, seq: Sequence, step: int) -> None:
        """A request ended: a predictor that learns hears of it."""
        self.costs.pop(seq.index, None)
        if isinstance(self.predict, History):
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
    """The limits on the order asked for. Raises ValueError for a rate or a burst that is none."""
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
