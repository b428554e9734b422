"""Request quotas: no tenant gets more than so many requests in within any window of time; the others are rejected.

What services answer with "429 too many requests". A request over the quota is turned away on arrival, with the
reason, and takes no place in later windows. Unlike `tenant_rate` it holds nobody back: what gets in waits as the
order that it wraps has it. It protects a service from floods at the price of work that could have been done while
nobody else asked. It counts requests and not tokens, and what the engine turns away for another reason does not
count. With several replicas each has quotas of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

from policies.deadlines import duration
from policies.entry import Entry, Option
from policies.limited import whole
from policies.tenant_slots import counts
from policies.wrapper import Wrapper
from sim.policy.base import Order
from sim.request import SECOND, Nanoseconds, Sequence


class TenantQuota(Wrapper):
    """At most `requests` of a tenant within `window`, or what `tenants` says for it."""

    reorders = False

    def __init__(self, inner: Order, requests: int, window: Nanoseconds, tenants: Mapping[str, int]) -> None:
        super().__init__(inner)
        self.requests = requests
        self.window = window
        self.tenants = tenants
        self.taken: dict[str, deque[Nanoseconds]] = {}  # when those of a window got in, by tenant

    def refusal(self, seq: Sequence, now: Nanoseconds) -> str:
        """Why a newcomer is turned away: its tenant has used up the quota."""
        tenant = seq.request.tenant
        taken = self.taken.setdefault(tenant, deque())
        while taken and taken[0] <= now - self.window:
            taken.popleft()
        if len(taken) >= self.tenants.get(tenant, self.requests):
            return "tenant is over its quota"
        complaint = super().refusal(seq, now)
        if not complaint:
            taken.append(now)
        return complaint


def make(seed: int, order: Callable[[], Order], requests: object, window: object, tenants: object) -> Order:
    """The quotas on the order asked for. Raises ValueError for a count or a time that is none."""
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
    over_preemptive=True,
)
