"""Deficit round robin: tenants take turns, and each turn adds a quantum of tokens to the tenant's deficit counter.

At its turn a tenant's deficit grows by the quantum; its requests are admitted while the deficit covers their cost
(prompt plus predicted output), and the rest is kept for the next round unless the tenant's queue is empty. While two
tenants always have waiting requests, their admitted costs differ by at most the quantum and twice the largest cost,
whatever the sizes of their requests (Shreedhar and Varghese, SIGCOMM 1995). The work per request is constant and
there are no counters to lift; but costs must be known in advance, so shares are as accurate as the predictions.

A preempted request is not charged again; it returns to its tenant's queue and is admitted at the tenant's next turn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from policies.base.entry import Entry, Option
from policies.base.option_values import whole
from policies.base.predicted_order import OPTIONS, name_of_predictor
from policies.predictors.base import Predictor
from policies.predictors.learned import LearnedPredictor
from policies.predictors.registry import predictor
from sim.policy.base import Order
from sim.policy.wrapper import Forwarding, sooner
from sim.request import Nanoseconds
from sim.sequence import Sequence


@dataclass(eq=False)
class Turn:
    """A tenant in the ring: its queue, and its deficit counter in tokens."""

    queue: Order
    deficit: int = 0


class DeficitRoundRobin(Forwarding):
    """The head of the tenant whose turn it is while its deficit covers the cost, then that of the next tenant."""

    def __init__(self, order: Callable[[], Order], quantum: int, predict: Predictor) -> None:
        """`order` makes the queue of one tenant; `quantum` is in tokens."""
        self.listeners = (self,)
        self.new_queue = order
        self.quantum = quantum
        self.predict = predict
        self.tenants: dict[str, Turn] = {}
        self.ring: deque[Turn] = deque()  # tenants with waiting requests; the first has its turn, or will be next
        self.visiting = False
        self.waiting: dict[int, Sequence] = {}
        self.costs: dict[int, int] = {}  # in tokens, of every waiting request, until it is admitted

    def tenant(self, seq: Sequence) -> Turn:
        """The turn of the tenant that sent this request."""
        name = seq.request.tenant
        if name not in self.tenants:
            self.tenants[name] = Turn(self.new_queue())
        return self.tenants[name]

    def inner_of(self, seq: Sequence) -> Order:
        """The queue of its tenant."""
        return self.tenant(seq).queue

    def inners(self) -> Iterable[Order]:
        """The queues of all tenants."""
        return (tenant.queue for tenant in self.tenants.values())

    def push(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Join the tenant's queue."""
        self.enter(seq, seq.request.prompt + int(self.predict(seq.request)))
        super().push(seq, now, step)

    def push_back(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Return to the tenant's queue at no cost."""
        self.enter(seq, 0)
        super().push_back(seq, now, step)

    def rejoin(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Rejoin the tenant's queue with the same cost; the tenant keeps its deficit."""
        self.enter(seq, self.costs[seq.index], self.tenant(seq).deficit)
        super().rejoin(seq, now, step)

    def enter(self, seq: Sequence, cost: int, deficit: int = 0) -> None:
        """Record a request's cost; a tenant without waiting requests joins the end of the ring with this deficit."""
        self.waiting[seq.index] = seq
        self.costs[seq.index] = cost
        tenant = self.tenant(seq)
        if not len(tenant.queue):
            self.drop_idle()
            tenant.deficit = deficit
            self.ring.append(tenant)

    def drop_idle(self) -> None:
        """Remove tenants without waiting requests from the ring."""
        if self.ring and not len(self.ring[0].queue):
            self.visiting = False
        self.ring = deque(turn for turn in self.ring if len(turn.queue))

    def pop(self, seq: Sequence) -> None:
        """Leave the tenant's queue; the cost is charged in `admitted`."""
        del self.waiting[seq.index]
        super().pop(seq)

    def head(self, now: Nanoseconds, step: int) -> Sequence | None:
        """The head of the tenant whose deficit covers its cost first as the turns go round."""
        self.drop_idle()
        candidates = []
        for place, turn in enumerate(self.ring):
            seq = turn.queue.head(now, step)
            if seq is not None:
                candidates.append((self.turns_until(place, self.costs[seq.index]), seq))
        return min(candidates, key=lambda candidate: candidate[0])[1] if candidates else None

    def turns_until(self, place: int, cost: int) -> tuple[int, int]:
        """(rounds, place in the round) after which the deficit of the tenant at this place covers the cost."""
        missing = -(-(cost - self.ring[place].deficit) // self.quantum)
        if place or not self.visiting:
            return max(1, missing), place
        return (0, 0) if missing <= 0 else (missing, len(self.ring))

    def admitted(self, seq: Sequence, step: int) -> None:
        """Advance the turns to the tenant of this request and charge it the cost."""
        turn, cost = self.tenant(seq), self.costs.pop(seq.index)
        rounds, _ = self.turns_until(self.ring.index(turn), cost)
        if rounds:
            self.go_round(turn, rounds)
        turn.deficit -= cost
        if not len(turn.queue):
            self.drop_idle()
        super().admitted(seq, step)

    def go_round(self, turn: Turn, rounds: int) -> None:
        """Add the quantum at every turn, up to this tenant's turn in the last of `rounds` rounds."""
        if self.visiting:
            self.ring.rotate(-1)
        place = self.ring.index(turn)
        for other, visited in enumerate(self.ring):
            visited.deficit += self.quantum * (rounds if other <= place else rounds - 1)
        self.ring.rotate(-place)
        self.visiting = True

    def next_change(self, now: Nanoseconds, step: int) -> tuple[Nanoseconds | None, int | None]:
        """When the head of any tenant's queue may change."""
        until: Nanoseconds | None = None
        steps: int | None = None
        for turn in self.ring:
            if len(turn.queue):
                inner_until, inner_steps = turn.queue.next_change(now, step)
                until, steps = sooner(until, inner_until), sooner(steps, inner_steps)
        return until, steps

    def __len__(self) -> int:
        return len(self.waiting)

    def __iter__(self) -> Iterator[Sequence]:
        return iter(self.waiting.values())

    def left(self, seq: Sequence, step: int) -> None:
        """Notify a predictor that learns, and the tenant's queue."""
        self.costs.pop(seq.index, None)
        if isinstance(self.predict, LearnedPredictor):
            self.predict.ended(seq)
        super().left(seq, step)


def make(seed: int, order: Callable[[], Order], quantum: object, predict: object, error: object) -> Order:
    """Turns over queues that `order` makes. Raises ValueError for an impossible option."""
    return DeficitRoundRobin(order, whole("quantum", quantum), predictor(predict, error, seed))


ENTRY = Entry(
    "Tenants take turns, each worth a quantum of tokens; then the order it wraps.",
    make,
    {"order": Option("fcfs", "order"), "quantum": Option(500)} | OPTIONS,
    name_of_predictor,
    source="Shreedhar and Varghese, SIGCOMM 1995",
)
