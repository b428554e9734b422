"""Virtual token counter: the client that has been served least goes first.

Each tenant has a counter of weighted service: its prompt tokens when a request is first admitted, its output
tokens as they come (a preemption charges nothing twice). A tenant that returns after having nobody in the queue
is lifted to the least counter in it, or to that of the last who left it if it is empty, so that idling earns no
credit. Whatever two tenants ask, while both always wait their services differ by no more than
2 max(prompt_weight x longest prompt, output_weight x tokens that fit in a batch) (Sheng et al., Theorem 4.4).

`weights` gives tenants larger shares. Without `lift` it is the paper's "least counter first": a tenant that was away
makes up for it when it is back, and the others starve meanwhile. With `prepay` the predicted output is charged at
admission and settled as the tokens come, which keeps a tenant from filling the batch before its counter tells (the
paper's variant with length prediction). Within a tenant the order that it wraps decides. It is fair to tenants and
not to requests; it works conserving, so it limits nobody: for that there are tenant_slots and tenant_rate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from policies.entry import Entry, Option
from policies.predict import Predictor, predictor
from policies.service import Account, Tariff
from policies.wrapper import Forwarding, sooner
from sim.policy.base import Order
from sim.request import Nanoseconds, Sequence


class VirtualTokenCounter(Forwarding):
    """The least served tenant first, then the order within the tenant; at a tie the tenant known longer.

    lifts  "queue": a tenant returns that had nobody waiting (the paper); "engine": nobody waiting or running;
           "never": counters are not lifted, and idling earns credit (the paper's "least counter first")
    """

    counts_service = True

    def __init__(
        self, order: Callable[[], Order], tariff: Tariff, prepay: Predictor | None = None, lifts: str = "queue"
    ) -> None:
        """`order` makes the queue of one tenant."""
        self.new_queue = order
        self.tariff = tariff
        self.prepay = prepay
        self.lifts = lifts
        self.tenants: dict[str, Account] = {}
        self.waiting: dict[int, Sequence] = {}
        self.last_left: Account | None = None

    def tenant(self, seq: Sequence) -> Account:
        """The account of the tenant that sent this request."""
        name = seq.request.tenant
        if name not in self.tenants:
            self.tenants[name] = Account(self.new_queue(), self.tariff.of(name))
        return self.tenants[name]

    def inner_of(self, seq: Sequence) -> Order:
        """The queue of its tenant."""
        return self.tenant(seq).queue

    def active(self, tenant: Account) -> bool:
        """Whether it is there, so that the others who return are lifted to it and it is not lifted itself."""
        return bool(tenant.present if self.lifts == "engine" else len(tenant.queue))

    def push(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Join the tenant's queue; a tenant that returns is lifted."""
        tenant = self.tenant(seq)
        if self.lifts != "never" and not self.active(tenant):
            active = [other.service(step) for other in self.tenants.values() if self.active(other)]
            last = self.last_left.service(step) if self.last_left else 0
            tenant.settle(step, max(0, min(active, default=last) - tenant.service(step)))
        tenant.present += 1
        self.waiting[seq.index] = seq
        super().push(seq, now, step)

    def push_back(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Return to the tenant's queue; it was never away."""
        self.waiting[seq.index] = seq
        super().push_back(seq, now, step)

    def rejoin(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Back in the tenant's queue; it was never away."""
        self.waiting[seq.index] = seq
        super().rejoin(seq, now, step)

    def pop(self, seq: Sequence) -> None:
        """Leave the tenant's queue."""
        tenant = self.tenant(seq)
        del self.waiting[seq.index]
        super().pop(seq)
        if self.lifts == "queue" and not len(tenant.queue):
            self.last_left = tenant

    def head(self, now: Nanoseconds, step: int) -> Sequence | None:
        """The first in line of the least served tenant of whom somebody may go."""
        for tenant in self.in_line(step):
            seq = tenant.queue.head(now, step)
            if seq is not None:
                return seq
        return None

    def in_line(self, step: int) -> list[Account]:
        """The tenants of whom someone waits, the least served first; at a tie in order of first appearance."""
        return sorted(
            (tenant for tenant in self.tenants.values() if len(tenant.queue)),
            key=lambda tenant: tenant.service(step),
        )

    def next_change(self, now: Nanoseconds, step: int) -> tuple[Nanoseconds | None, int | None]:
        """When another tenant becomes the least served, or a wrapped order may change its answer."""
        until: Nanoseconds | None = None
        steps: int | None = None
        in_line = self.in_line(step)
        for tenant in in_line:
            inner_until, inner_steps = tenant.queue.next_change(now, step)
            until, steps = sooner(until, inner_until), sooner(steps, inner_steps)
            if tenant.queue.head(now, step) is not None:
                return until, sooner(steps, steps_until_passed(tenant, in_line, step))
        return until, steps

    def __len__(self) -> int:
        return len(self.waiting)

    def __iter__(self) -> Iterator[Sequence]:
        return iter(self.waiting.values())

    def admitted(self, seq: Sequence, step: int) -> None:
        """Charge the prompt, and what is paid in advance, once."""
        tenant = self.tenant(seq)
        if not seq.peak:
            tenant.admit(seq, step, int(self.prepay(seq.request)) if self.prepay else 0)
        super().admitted(seq, step)

    def token(self, seq: Sequence, step: int) -> None:
        """Charge a token that came outside of plain decoding."""
        self.tenant(seq).token(seq, step)
        super().token(seq, step)

    def decoding(self, seq: Sequence, step: int) -> None:
        """From here on the tenant earns one token more per step."""
        self.tenant(seq).decoding(seq, step)
        super().decoding(seq, step)

    def paused(self, seq: Sequence, step: int) -> None:
        """From here on it earns one less."""
        self.tenant(seq).paused(seq, step)
        super().paused(seq, step)

    def left(self, seq: Sequence, step: int) -> None:
        """The request is gone; what it prepaid and did not get is given back."""
        tenant = self.tenant(seq)
        tenant.end(seq, step)
        tenant.present -= 1
        if self.lifts == "engine" and not tenant.present:
            self.last_left = tenant
        super().left(seq, step)


def steps_until_passed(tenant: Account, others: list[Account], step: int) -> int | None:
    """In how many steps the order between a tenant and one of the others may change, at the earliest."""
    steps = [
        max(1, (other.settled - tenant.settled) // (tenant.pace - other.pace))
        for other in others
        if other.pace < tenant.pace
    ]
    start = tenant.next_start()
    if start is not None:
        steps.append(max(1, start - step))
    return min(steps, default=None)


def make(
    seed: int,
    order: Callable[[], Order],
    prompt_weight: object,
    output_weight: object,
    weights: object,
    lift: object,
    prepay: object,
    predict: object,
    error: object,
) -> Order:
    """Fair shares over queues that `order` makes. Raises ValueError for options that make no sense."""
    if not isinstance(prepay, bool):
        raise ValueError(f"prepay is {prepay!r}; expected true or false")
    if not isinstance(lift, bool):
        raise ValueError(f"lift is {lift!r}; expected true or false")
    found = predictor(predict, error, seed)
    if not prepay and (predict, error) != (OPTIONS["predict"].default, OPTIONS["error"].default):
        raise ValueError("predict and error apply to prepay: true only")
    tariff = Tariff(prompt_weight, output_weight, weights)
    return VirtualTokenCounter(order, tariff, found if prepay else None, "queue" if lift else "never")


def name_of_predictor(prepay: object, predict: object, error: object, **others: object) -> str | None:
    """What results call the predictor of what is paid in advance."""
    return predictor(predict, error, seed=0).name if prepay else None


OPTIONS: Mapping[str, Option] = {
    "order": Option("fcfs", "order"),
    "prompt_weight": Option(1),
    "output_weight": Option(2),
    "weights": Option({}),
    "lift": Option(True),
    "prepay": Option(False),
    "predict": Option("exact"),
    "error": Option(0),
}

ENTRY = Entry(
    "The tenant served least first, by weighted prompt and output tokens; then the order it wraps.",
    make,
    OPTIONS,
    name_of_predictor,
    source="Sheng et al., OSDI 2024",
)
