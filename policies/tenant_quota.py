"""Request quotas: at most a number of accepted requests per tenant in any window of time; others are rejected.

Services answer such requests with "429 too many requests". A request over the quota is rejected on arrival, with the
reason, and does not count in later windows. Unlike `tenant_rate`, the quota delays no request: accepted ones wait in
the wrapped order. It protects a service from floods, but also rejects requests while capacity is free. It counts
requests, not tokens; requests that the engine rejects for another reason do not count. With several replicas each has
quotas of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

from policies.base.entry import Entry, Option
from policies.base.option_values import counts, duration, whole
from sim.policy.base import Order
from sim.policy.wrapper import Wrapper
from sim.request import SECOND, Nanoseconds
from sim.sequence import Sequence


class TenantQuota(Wrapper):
    """At most `requests` of a tenant within `window` (ns), or the number in `tenants` for it."""

    reorders = False

    def __init__(self, inner: Order, requests: int, window: Nanoseconds, tenants: Mapping[str, int]) -> None:
        super().__init__(inner)
        self.requests = requests
        self.window = window
        self.tenants = tenants
        self.taken: dict[str, deque[Nanoseconds]] = {}  # acceptance times within a window, by tenant

    def refusal(self, seq: Sequence, now: Nanoseconds) -> str:
        """The reason for rejecting a new request; empty if it is accepted."""
        tenant = seq.request.tenant
        taken = self.taken.setdefault(tenant, deque())
        while taken and taken[0] <= now - self.window:
            taken.popleft()
        if len(taken) >= self.tenants.get(tenant, self.requests):
            return "tenant is over its quota"
        reason = super().refusal(seq, now)
        if not reason:
            taken.append(now)
        return reason


def make(seed: int, order: Callable[[], Order], requests: object, window: object, tenants: object) -> Order:
    """The quotas over the order given. Raises ValueError for an impossible option."""
    found = duration("window", window)
    if not found:
        raise ValueError("window is 0; expected a time above 0")
    return TenantQuota(order(), whole("requests", requests), found, counts("tenants", tenants, least=0))


ENTRY = Entry(
    "No tenant with more than so many requests in a window, others rejected; then the order it wraps.",
    make,
    {
        "order": Option("fcfs", "order"),
        "requests": Option(20),
        "window": Option(60 * SECOND, "duration"),
        "tenants": Option({}),
    },
    wraps_preemptive=True,
)
