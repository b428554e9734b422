"""Deficit round robin: the tenants take turns, and each turn is worth a quantum of tokens.

On its visit a tenant's deficit grows by the quantum; its requests go while the deficit covers their cost (prompt
plus predicted output), and what is left is kept for the next round unless its queue is empty. While two tenants
always wait, what they were admitted for differs by no more than the quantum and twice the longest cost, whatever
the sizes of their requests (Shreedhar and Varghese, SIGCOMM 1995). Constant work per request and no counters to
lift; but it goes by costs that must be known in advance, so its shares are as good as its predictions.

A preempted request has paid; it returns to its tenant's queue and goes at the tenant's next turn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from policies.entry import Entry, Option
from policies.history import History
from policies.predict import Predictor, predictor
from policies.predicted import OPTIONS, name_of_predictor
from policies.wrapper import Forwarding, sooner
from sim.policy.base import Order
from sim.request import Nanoseconds, Sequence


@dataclass(eq=False)
class Turn:
    """A tenant in the ring, and the tokens it may still spend."""

    queue: Order
    deficit: int = 0


class DeficitRoundRobin(Forwarding):
    """The tenant whose turn it is, as long as its deficit lasts, then the next."""

    counts_service = True

    def __init__(self, order: Callable[[], Order], quantum: int, predict: Predictor) -> None:
        """`order` makes the queue of one tenant. Raises ValueError for a quantum below 1."""
        if isinstance(quantum, bool) or not isinstance(quantum, int) or quantum < 1:
            raise ValueError(f"quantum is {quantum!r}; expected a whole number of tokens, at least 1")
        self.new_queue = order
        self.quantum = quantum
        self.predict = predict
        self.tenants: dict[str, Turn] = {}
        self.ring: deque[Turn] = deque()  # those with someone waiting; the first is visited, or will be next
        self.visiting = False
        self.waiting: dict[int, Sequence] = {}
        self.costs: dict[int, int] = {}  # of everyone who waits, until it is admitted

    def tenant(self, seq: Sequence) -> Turn:
        """The place of the tenant that sent this request."""
        name = seq.request.tenant
        if name not in self.tenants:
            self.tenants[name] = Turn(self.new_queue())
        return self.tenants[name]

    def inner_of(self, seq: Sequence) -> Order:
        """The queue of its tenant."""
        return self.tenant(seq).queue

    def push(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Join the tenant's queue."""
        self.enter(seq, seq.request.prompt + int(self.predict(seq.request)))
        super().push(seq, now, step)

    def push_back(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Return to the tenant's queue; it has paid."""
        self.enter(seq, 0)
        super().push_back(seq, now, step)

    def rejoin(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Back in the tenant's queue; it owes what it owed, and its tenant, which was waiting, keeps its deficit."""
        self.enter(seq, self.costs[seq.index], self.tenant(seq).deficit)
        super().rejoin(seq, now, step)

    def enter(self, seq: Sequence, cost: int, deficit: int = 0) -> None:
        """Note what a request costs; a tenant that had nobody here comes last in the ring, with such a deficit."""
        self.waiting[seq.index] = seq
        self.costs[seq.index] = cost
        tenant = self.tenant(seq)
        if not len(tenant.queue):
            self.drop_idle()
            tenant.deficit = deficit
            self.ring.append(tenant)

    def drop_idle(self) -> None:
        """Tenants of whom nobody waits leave the ring."""
        if self.ring and not len(self.ring[0].queue):
            self.visiting = False
        self.ring = deque(turn for turn in self.ring if len(turn.queue))

    def pop(self, seq: Sequence) -> None:
        """Leave the tenant's queue; whether it is admitted, and pays, is heard next."""
        del self.waiting[seq.index]
        super().pop(seq)

    def head(self, now: Nanoseconds, step: int) -> Sequence | None:
        """The one whose tenant's turn first covers its cost, as the turns go round."""
        self.drop_idle()
        candidates = []
        for place, turn in enumerate(self.ring):
            seq = turn.queue.head(now, step)
            if seq is not None:
                candidates.append((self.turns_until(place, self.costs[seq.index]), seq))
        return min(candidates, key=lambda candidate: candidate[0])[1] if candidates else None

    def turns_until(self, place: int, cost: int) -> tuple[int, int]:
        """(rounds, place in the round) after which the tenant at a place of the ring can pay a cost."""
        missing = -(-(cost - self.ring[place].deficit) // self.quantum)
        if place or not self.visiting:
            return max(1, missing), place
        return (0, 0) if missing <= 0 else (missing, len(self.ring))

    def admitted(self, seq: Sequence, step: int) -> None:
        """The turns go round to the tenant of this request, which pays."""
        turn, cost = self.tenant(seq), self.costs.pop(seq.index)
        rounds, _ = self.turns_until(self.ring.index(turn), cost)
        if rounds:
            self.go_round(turn, rounds)
        turn.deficit -= cost
        if not len(turn.queue):
            self.drop_idle()
        super().admitted(seq, step)

    def go_round(self, turn: Turn, rounds: int) -> None:
        """Every visit brings a quantum, up to the visit to this tenant in the last of so many rounds."""
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
        """A request ended: a predictor that learns hears of it."""
        self.costs.pop(seq.index, None)
        if isinstance(self.predict, History):
            self.predict.ended(seq)
        super().left(seq, step)


def make(seed: int, order: Callable[[], Order], quantum: object, predict: object, error: object) -> Order:
    """Turns of queues that `order` makes. Raises ValueError for options that make no sense."""
    return DeficitRoundRobin(order, quantum, predictor(predict, error, seed))  # type: ignore[arg-type]  # it checks


ENTRY = Entry(
    "Tenants take turns, each worth a quantum of tokens; then the order it wraps.",
    make,
    {"order": Option("fcfs", "order"), "quantum": Option(500)} | OPTIONS,
    name_of_predictor,
    source="Shreedhar and Varghese, SIGCOMM 1995",
)
