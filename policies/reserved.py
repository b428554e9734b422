"""Reserved slots: of `of` slots, some are kept for the requests of certain tenants, whoever else waits.

So the first requests of a tenant with a reservation find a slot however great the load of the others is. The price
is that reserved slots stand empty while it sends nothing (booked as `limited`). `of` is how many requests the engine
runs at once, or fewer: then the rest stay empty. All slots that are not reserved are open to everyone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf

from policies.entry import Entry, Option
from policies.limited import Limited, whole
from policies.tenant_slots import counts
from sim.policy.base import Order
from sim.request import Nanoseconds, Sequence


class Reserved(Limited):
    """A tenant goes while it has reserved slots left, or the open ones are not all taken."""

    def __init__(self, order: Callable[[], Order], of: float, tenants: Mapping[str, int]) -> None:
        """Raises ValueError if nothing is left open."""
        super().__init__(order)
        self.tenants = tenants
        self.open = of - sum(tenants.values())
        if self.open < 1:
            raise ValueError(f"of is {of}; expected more than the {sum(tenants.values())} that are reserved")

    def may_go(self, seq: Sequence, now: Nanoseconds) -> bool:
        """Whether it finds a slot of its tenant's own, or an open one."""
        tenant = self.group(seq)
        if len(self.running.get(tenant, {})) < self.tenants.get(tenant, 0):
            return True
        taken = sum(max(0, len(there) - self.tenants.get(name, 0)) for name, there in self.running.items())
        return taken < self.open


def make(seed: int, order: Callable[[], Order], of: object, tenants: object) -> Order:
    """The reservations on the order asked for. Raises ValueError for what is no count, and for slots of no number."""
    kept = counts("tenants", tenants, least=0)
    if of is None and any(kept.values()):
        raise ValueError("of is not given; expected how many slots there are to reserve from")
    return Reserved(order, inf if of is None else whole("of", of), kept)


ENTRY = Entry(
    "Some slots are kept for certain tenants; then the order it wraps.",
    make,
    {"order": Option("fcfs", "order"), "of": Option(None, "slots"), "tenants": Option({})},
)
