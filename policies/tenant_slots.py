"""Concurrency limits: no tenant runs more than so many requests at once.

What most services sell as a limit of concurrent requests. One tenant's flood or its long requests can not fill
the batch; but slots stand empty while only limited tenants wait (booked as `limited`), so it trades occupancy
for isolation, where `vtc` trades none. It caps slots and not work: tokens are for tenant_rate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from policies.entry import Entry, Option
from policies.limited import Limited, whole
from sim.policy.base import Order
from sim.request import Nanoseconds, Sequence


class TenantSlots(Limited):
    """At most `slots` running requests of a tenant, or what `tenants` says for it."""

    def __init__(self, order: Callable[[], Order], slots: int, tenants: Mapping[str, int]) -> None:
        super().__init__(order)
        self.slots = slots
        self.tenants = tenants

    def may_go(self, seq: Sequence, now: Nanoseconds) -> bool:
        """Whether the tenant runs fewer than it may."""
        tenant = self.group(seq)
        return len(self.running.get(tenant, {})) < self.tenants.get(tenant, self.slots)


def make(seed: int, order: Callable[[], Order], slots: object, tenants: object) -> Order:
    """The limits on the order asked for. Raises ValueError for a limit that is no count."""
    return TenantSlots(order, whole("slots", slots), counts("tenants", tenants))


def counts(name: str, value: object, least: int = 1) -> dict[str, int]:
    """`value` if it gives tenants whole numbers; raises ValueError otherwise."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} is {value!r}; expected tenants with their counts")
    return {str(tenant): whole(f"{name}.{tenant}", count, least) for tenant, count in value.items()}


ENTRY = Entry(
    "No tenant in more than so many slots at once; then the order it wraps.",
    make,
    {"order": Option("fcfs", "order"), "slots": Option(8), "tenants": Option({})},
)
