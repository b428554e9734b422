"""Fair shares between tenants: the tenant that has been served least goes first.

Each tenant has a counter of weighted service: a prompt token counts 1, when its request is first admitted,
an output token 2, when it is generated (the weights of the virtual token counter, Sheng et al., OSDI 2024).
A tenant that returns after having nothing in the engine is lifted to the least counter of those who have,
or to that of the last who left, so that idling earns no credit. Within a tenant the order that `fair` wraps
decides. And nobody starves: a request that has waited longer than `max_wait` since it joined goes first,
oldest first.

Knows nothing of slots and pages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush

from policies.entry import Entry, Option
from sim.policy import Order
from sim.request import SECOND, Nanoseconds, Sequence

PROMPT_WEIGHT = 1
OUTPUT_WEIGHT = 2


@dataclass
class Tenant:
    """One tenant's queue and its service, settled up to a step; `decoders` go on earning after it."""

    queue: Order
    settled: int = 0
    settled_at: int = 0
    decoders: int = 0
    present: int = 0

    def service(self, step: int) -> int:
        """Weighted service received before step number `step`."""
        return self.settled + self.pace * (step - self.settled_at)

    @property
    def pace(self) -> int:
        """Weighted service per step."""
        return OUTPUT_WEIGHT * self.decoders

    def settle(self, step: int, more: int = 0) -> None:
        """Bring the counter up to date, before its pace changes."""
        self.settled = self.service(step) + more
        self.settled_at = step


class Fair(Order):
    """Overdue first, then the least served tenant, then the order within the tenant."""

    counts_service = True

    def __init__(self, order: Callable[[], Order], max_wait: Nanoseconds) -> None:
        """`order` makes the queue of one tenant. Raises ValueError for a negative `max_wait`."""
        if max_wait < 0:
            raise ValueError(f"max_wait is {max_wait} ns; expected 0 or more")
        self.new_queue = order
        self.max_wait = max_wait
        self.tenants: dict[str, Tenant] = {}
        self.joined: dict[int, Nanoseconds] = {}  # first queue entry of everyone present
        self.oldest: list[tuple[Nanoseconds, int, Sequence]] = []  # heap; some may have left the queue
        self.waiting: dict[int, Sequence] = {}
        self.last_left = 0

    def tenant(self, seq: Sequence) -> Tenant:
        """The account of the tenant that sent this request."""
        name = seq.request.tenant
        if name not in self.tenants:
            self.tenants[name] = Tenant(self.new_queue())
        return self.tenants[name]

    def push(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Join the tenant's queue; a tenant that had nothing in the engine is lifted."""
        tenant = self.tenant(seq)
        if not tenant.present:
            active = [other.service(step) for other in self.tenants.values() if other.present]
            tenant.settle(step, max(0, min(active, default=self.last_left) - tenant.service(step)))
        tenant.present += 1
        self.joined[seq.index] = now
        tenant.queue.push(seq, now, step)
        self.note(seq)

    def push_back(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Return to the tenant's queue; what it waited before still counts."""
        self.tenant(seq).queue.push_back(seq, now, step)
        self.note(seq)

    def note(self, seq: Sequence) -> None:
        """Enter the sequence among those who wait."""
        self.waiting[seq.index] = seq
        heappush(self.oldest, (self.joined[seq.index], seq.index, seq))

    def pop(self, seq: Sequence) -> None:
        """Leave the tenant's queue."""
        del self.waiting[seq.index]
        self.tenant(seq).queue.pop(seq)

    def head(self, now: Nanoseconds, step: int) -> Sequence | None:
        """The oldest of the overdue, or the first in line of the least served tenant."""
        joined, seq = self.longest_wait()
        if now - joined > self.max_wait:
            return seq
        return min(self.in_line(), key=lambda tenant: tenant.service(step)).queue.head(now, step)

    def in_line(self) -> list[Tenant]:
        """The tenants of whom someone waits, in order of first appearance."""
        return [tenant for tenant in self.tenants.values() if len(tenant.queue)]

    def longest_wait(self) -> tuple[Nanoseconds, Sequence]:
        """When the one who waits longest joined, and who it is."""
        while True:
            joined, index, seq = self.oldest[0]
            if index in self.waiting:
                return joined, seq
            heappop(self.oldest)

    def next_change(self, now: Nanoseconds, step: int) -> tuple[Nanoseconds | None, int | None]:
        """When the oldest becomes overdue, and when another tenant becomes the least served."""
        joined, _ = self.longest_wait()
        if now - joined > self.max_wait:
            return None, None
        in_line = self.in_line()
        least = min(in_line, key=lambda tenant: tenant.service(step))
        crossings = [
            max(1, (other.service(step) - least.service(step)) // (least.pace - other.pace))
            for other in in_line
            if other.pace < least.pace
        ]
        return joined + self.max_wait + 1, min(crossings, default=None)

    def __len__(self) -> int:
        return len(self.waiting)

    def __iter__(self) -> Iterator[Sequence]:
        return iter(self.waiting.values())

    def admitted(self, seq: Sequence, step: int) -> None:
        """Charge the prompt, once."""
        if not seq.peak:
            self.tenant(seq).settle(step, PROMPT_WEIGHT * seq.request.prompt)

    def token(self, seq: Sequence, step: int) -> None:
        """Charge a token that came outside of plain decoding."""
        self.tenant(seq).settle(step, OUTPUT_WEIGHT)

    def decoding(self, seq: Sequence, step: int) -> None:
        """From here on the tenant earns one token more per step."""
        tenant = self.tenant(seq)
        tenant.settle(step)
        tenant.decoders += 1

    def paused(self, seq: Sequence, step: int) -> None:
        """From here on it earns one less."""
        tenant = self.tenant(seq)
        tenant.settle(step)
        tenant.decoders -= 1

    def left(self, seq: Sequence, step: int) -> None:
        """The request is gone; a tenant's last one leaves the level to which the next to return is lifted."""
        tenant = self.tenant(seq)
        tenant.present -= 1
        del self.joined[seq.index]
        if not tenant.present:
            self.last_left = tenant.service(step)


def make(seed: int, order: Callable[[], Order], max_wait: object) -> Order:
    """Fair shares over queues that `order` makes. Raises ValueError for a cap that is no time."""
    if isinstance(max_wait, bool) or not isinstance(max_wait, Nanoseconds):
        raise ValueError(f"max_wait is {max_wait!r}; expected a duration")
    return Fair(order, max_wait)


ENTRY = Entry(
    "Overdue requests first, then the tenant served least, then the order it wraps.",
    make,
    {"order": Option("sjf", "order"), "max_wait": Option(30 * SECOND, "duration")},
)
