"""Fair shares between tenants: the tenant that has received the least service goes first.

Each tenant has a counter of weighted service: a prompt token counts 1, when its request is first admitted, an output
token 2, when it is generated (the weights of the virtual token counter, Sheng et al., OSDI 2024). When a tenant
returns after having no request in the engine, its counter is lifted to the least counter of the tenants that have
one, or to that of the last tenant that left, so that idling earns no credit. (`vtc` lifts, as the paper does, a
tenant that had no *waiting* request.) Within a tenant the wrapped order decides. No request starves: one that has
waited longer than `max_wait` since its arrival goes first, the oldest first.
"""

from __future__ import annotations

from collections.abc import Callable

from policies.base.entry import Entry, Option
from policies.base.option_values import duration
from policies.base.service_counters import Tariff
from policies.max_wait import MaxWait
from policies.vtc import VirtualTokenCounter
from sim.policy.base import Order
from sim.request import SECOND, Nanoseconds


def fair(order: Callable[[], Order], max_wait: Nanoseconds) -> MaxWait:
    """Overdue requests first, then the least served tenant, then the order within the tenant, which `order` makes.

    Raises ValueError for a negative `max_wait`.
    """
    return MaxWait(VirtualTokenCounter(order, Tariff(), lifts="engine"), max_wait)


def make(seed: int, order: Callable[[], Order], max_wait: object) -> Order:
    """Fair shares over queues that `order` makes. Raises ValueError for a `max_wait` that is no duration."""
    return fair(order, duration("max_wait", max_wait))


ENTRY = Entry(
    "Overdue requests first, then the tenant served least, then the order it wraps.",
    make,
    {"order": Option("sjf", "order"), "max_wait": Option(30 * SECOND, "duration")},
    source="Sheng et al., OSDI 2024",
)
