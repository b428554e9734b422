"""Fair shares between tenants: the tenant that has been served least goes first.

Each tenant has a counter of weighted service: a prompt token counts 1, when its request is first admitted,
an output token 2, when it is generated (the weights of the virtual token counter, Sheng et al., OSDI 2024).
A tenant that returns after having nothing in the engine is lifted to the least counter of those who have,
or to that of the last who left, so that idling earns no credit. (`vtc` lifts, as the paper does, a tenant that
had nobody waiting.) Within a tenant the order that `fair` wraps decides. And nobody starves: a request that has
waited longer than `max_wait` since it joined goes first, oldest first.

Knows nothing of slots and pages.
"""

from __future__ import annotations

from collections.abc import Callable

from policies.deadlines import duration
from policies.entry import Entry, Option
from policies.max_wait import MaxWait
from policies.service import Tariff
from policies.vtc import VirtualTokenCounter
from sim.policy.base import Order
from sim.request import SECOND, Nanoseconds


def fair(order: Callable[[], Order], max_wait: Nanoseconds) -> MaxWait:
    """Overdue first, then the least served tenant, then the order within the tenant, which `order` makes.

    Raises ValueError for a negative `max_wait`.
    """
    return MaxWait(VirtualTokenCounter(order, Tariff(), lifts="engine"), max_wait)


def make(seed: int, order: Callable[[], Order], max_wait: object) -> Order:
    """Fair shares over queues that `order` makes. Raises ValueError for a cap that is no time."""
    return fair(order, duration("max_wait", max_wait))


ENTRY = Entry(
    "Overdue requests first, then the tenant served least, then the order it wraps.",
    make,
    {"order": Option("sjf", "order"), "max_wait": Option(30 * SECOND, "duration")},
    source="Sheng et al., OSDI 2024",
)
