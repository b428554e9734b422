"""Virtual token counter: the tenant that has received the least service goes first.

Each tenant has a counter of weighted service: its prompt tokens when a request is first admitted, its output tokens
as they are generated (a preemption charges nothing twice). When a tenant returns after having no waiting request, its
counter is lifted to the least counter of the tenants with waiting requests, or, if there is none, to that of the
tenant that left the queue last, so that idling earns no credit. While two tenants always have waiting requests, their
services differ by at most 2 max(prompt_weight x longest prompt, output_weight x tokens that fit in a batch) (Sheng et
al., Theorem 4.4).

`weights` gives tenants larger shares. Without `lift` it is the paper's "least counter first": a tenant that was idle
catches up when it returns, and the others starve meanwhile. With `prepay` the predicted output is charged at
admission and corrected as tokens are generated, so that a tenant cannot fill the batch before its counter grows (the
paper's variant with length prediction). Within a tenant the wrapped order decides. It is fair to tenants, not to
requests. It is work-conserving, so it limits no tenant: for limits use `tenant_slots` or `tenant_rate`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from policies.base.entry import Entry, Option
from policies.base.option_values import flag
from policies.base.service_counters import ServiceCounter, Tariff
from policies.predictors.base import Predictor
from policies.predictors.registry import predictor
from sim.policy.base import Order
from sim.policy.wrapper import Forwarding, sooner
from sim.request import Nanoseconds
from sim.sequence import Sequence


class VirtualTokenCounter(Forwarding):
    """The least served tenant first, then the order within the tenant; ties go to the tenant that appeared first.

    lifts  "queue": the counter of a tenant that had no waiting request is lifted when it returns (the paper);
           "engine": that of a tenant without waiting and running requests;
           "never": counters are not lifted, and idling earns credit (the paper's "least counter first")
    """

    def __init__(
        self, order: Callable[[], Order], tariff: Tariff, prepay: Predictor | None = None, lifts: str = "queue"
    ) -> None:
        """`order` makes the queue of one tenant."""
        self.listeners = (self,)
        self.new_queue = order
        self.tariff = tariff
        self.prepay = prepay
        self.lifts = lifts
        self.tenants: dict[str, ServiceCounter] = {}
        self.waiting: dict[int, Sequence] = {}
        self.last_left: ServiceCounter | None = None

    def tenant(self, seq: Sequence) -> ServiceCounter:
        """The service counter of the tenant that sent this request."""
        name = seq.request.tenant
        if name not in self.tenants:
            self.tenants[name] = ServiceCounter(self.new_queue(), self.tariff.of(name))
        return self.tenants[name]

    def inner_of(self, seq: Sequence) -> Order:
        """The queue of its tenant."""
        return self.tenant(seq).queue

    def inners(self) -> Iterable[Order]:
        """The queues of all tenants."""
        return (tenant.queue for tenant in self.tenants.values())

    def active(self, tenant: ServiceCounter) -> bool:
        """Whether the tenant is present: returning tenants are lifted to its counter, and it is not lifted."""
        return bool(tenant.present if self.lifts == "engine" else len(tenant.queue))

    def push(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Join the tenant's queue; the counter of a tenant that returns is lifted."""
        tenant = self.tenant(seq)
        if self.lifts != "never" and not self.active(tenant):
            active = [other.service(step) for other in self.tenants.values() if self.active(other)]
            last = self.last_left.service(step) if self.last_left else 0
            tenant.settle(step, max(0, min(active, default=last) - tenant.service(step)))
        tenant.present += 1
        self.waiting[seq.index] = seq
        super().push(seq, now, step)

    def push_back(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Return to the tenant's queue; the counter is not lifted."""
        self.waiting[seq.index] = seq
        super().push_back(seq, now, step)

    def rejoin(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Rejoin the tenant's queue; the counter is not lifted."""
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
        """The head of the least served tenant whose queue has one."""
        for tenant in self.by_service(step):
            seq = tenant.queue.head(now, step)
            if seq is not None:
                return seq
        return None

    def by_service(self, step: int) -> list[ServiceCounter]:
        """The tenants with waiting requests, the least served first; ties in order of first appearance."""
        return sorted(
            (tenant for tenant in self.tenants.values() if len(tenant.queue)),
            key=lambda tenant: tenant.service(step),
        )

    def next_change(self, now: Nanoseconds, step: int) -> tuple[Nanoseconds | None, int | None]:
        """When another tenant may become the least served, or the head of a tenant's queue may change."""
        until: Nanoseconds | None = None
        steps: int | None = None
        by_service = self.by_service(step)
        for tenant in by_service:
            inner_until, inner_steps = tenant.queue.next_change(now, step)
            until, steps = sooner(until, inner_until), sooner(steps, inner_steps)
            if tenant.queue.head(now, step) is not None:
                return until, sooner(steps, steps_until_passed(tenant, by_service, step))
        return until, steps

    def __len__(self) -> int:
        return len(self.waiting)

    def __iter__(self) -> Iterator[Sequence]:
        return iter(self.waiting.values())

    def admitted(self, seq: Sequence, step: int) -> None:
        """Charge the prompt and the prepaid output, once."""
        tenant = self.tenant(seq)
        if not seq.peak:
            tenant.admit(seq, step, int(self.prepay(seq.request)) if self.prepay else 0)
        super().admitted(seq, step)

    def token(self, seq: Sequence, step: int) -> None:
        """Charge a token generated outside of a decoding run."""
        self.tenant(seq).token(seq, step)
        super().token(seq, step)

    def decoding(self, seq: Sequence, step: int) -> None:
        """From `step` on the tenant is charged for one more token per step."""
        self.tenant(seq).decoding(seq, step)
        super().decoding(seq, step)

    def paused(self, seq: Sequence, step: int) -> None:
        """From `step` on the tenant is charged for one token less per step."""
        self.tenant(seq).paused(seq, step)
        super().paused(seq, step)

    def left(self, seq: Sequence, step: int) -> None:
        """Refund prepaid tokens that were not generated."""
        tenant = self.tenant(seq)
        tenant.end(seq, step)
        tenant.present -= 1
        if self.lifts == "engine" and not tenant.present:
            self.last_left = tenant
        super().left(seq, step)


def steps_until_passed(tenant: ServiceCounter, others: list[ServiceCounter], step: int) -> int | None:
    """The fewest steps after which the order between a tenant and one of the others may change; None: never."""
    steps = [
        max(1, (other.settled - tenant.settled) // (tenant.service_per_step - other.service_per_step))
        for other in others
        if other.service_per_step < tenant.service_per_step
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
    """Fair shares over queues that `order` makes. Raises ValueError for an impossible option."""
    lifted = "queue" if flag("lift", lift) else "never"
    prepaid = flag("prepay", prepay)
    found = predictor(predict, error, seed)
    if not prepaid and (predict, error) != (OPTIONS["predict"].default, OPTIONS["error"].default):
        raise ValueError("predict and error apply to prepay: true only")
    tariff = Tariff(prompt_weight, output_weight, weights)
    return VirtualTokenCounter(order, tariff, found if prepaid else None, lifted)


def name_of_predictor(prepay: object, predict: object, error: object, **others: object) -> str | None:
    """The name in results of the predictor of prepaid output; None without `prepay`."""
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
