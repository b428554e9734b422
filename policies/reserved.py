"""Reserved slots: of `of` slots, some are kept for the requests of certain tenants.

A tenant with a reservation is admitted to its reserved slots whatever the load of other tenants. Reserved slots stay
empty while the tenant sends nothing (booked as `limited`). `of` is how many requests the engine runs at once, or
fewer: then the rest stay empty. Slots that are not reserved are open to all tenants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf

from policies.base.entry import Entry, Option
from policies.base.limiting_wrapper import LimitingWrapper
from policies.base.option_values import counts, whole
from sim.policy.base import Order
from sim.request import Nanoseconds
from sim.sequence import Sequence


class Reserved(LimitingWrapper):
    """A tenant is admitted while one of its reserved slots or an open slot is free."""

    def __init__(self, order: Callable[[], Order], of: float, tenants: Mapping[str, int]) -> None:
        """Raises ValueError if no open slot is left."""
        super().__init__(order)
        self.tenants = tenants
        self.open = of - sum(tenants.values())
        if self.open < 1:
            raise ValueError(f"of is {of}; expected more than the {sum(tenants.values())} that are reserved")

    def may_go(self, seq: Sequence, now: Nanoseconds) -> bool:
        """Whether a reserved slot of its tenant or an open slot is free."""
        tenant = self.group(seq)
        if len(self.running.get(tenant, {})) < self.tenants.get(tenant, 0):
            return True
        taken = sum(max(0, len(there) - self.tenants.get(name, 0)) for name, there in self.running.items())
        return taken < self.open


def make(seed: int, order: Callable[[], Order], of: object, tenants: object) -> Order:
    """The reservations over the order given. Raises ValueError for impossible counts or no number of slots."""
    kept = counts("tenants", tenants, least=0)
    if of is None and any(kept.values()):
        raise ValueError("of is not given; expected how many slots there are to reserve from")
    return Reserved(order, inf if of is None else whole("of", of), kept)


ENTRY = Entry(
    "Some slots are kept for certain tenants; then the order it wraps.",
    make,
    {"order": Option("fcfs", "order"), "of": Option(None, "slots"), "tenants": Option({})},
)
