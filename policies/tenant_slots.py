"""Concurrency limits: at most a number of running requests per tenant.

Services sell this as a limit of concurrent requests. The requests of one tenant cannot fill the batch; but slots stay
empty while only tenants at their limit have waiting requests (booked as `limited`). So it gives up occupancy for
isolation, which `vtc` does not. It limits slots, not work; for tokens use `tenant_rate`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from policies.base.entry import Entry, Option
from policies.base.limiting_wrapper import LimitingWrapper
from policies.base.option_values import counts, whole
from sim.policy.base import Order
from sim.request import Nanoseconds
from sim.sequence import Sequence


class TenantSlots(LimitingWrapper):
    """At most `slots` running requests of a tenant, or the number in `tenants` for it."""

    def __init__(self, order: Callable[[], Order], slots: int, tenants: Mapping[str, int]) -> None:
        super().__init__(order)
        self.slots = slots
        self.tenants = tenants

    def may_go(self, seq: Sequence, now: Nanoseconds) -> bool:
        """Whether its tenant has fewer running requests than its limit."""
        tenant = self.group(seq)
        return len(self.running.get(tenant, {})) < self.tenants.get(tenant, self.slots)


def make(seed: int, order: Callable[[], Order], slots: object, tenants: object) -> Order:
    """The limits over the order given. Raises ValueError for an impossible option."""
    return TenantSlots(order, whole("slots", slots), counts("tenants", tenants))


ENTRY = Entry(
    "No tenant in more than so many slots at once; then the order it wraps.",
    make,
    {"order": Option("fcfs", "order"), "slots": Option(8), "tenants": Option({})},
)
