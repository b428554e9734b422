"""Base class of limits: requests over a limit are held back, and the others pass them.

All requests join the wrapped order. A request that reaches its head while it is over the limit is held in a separate
queue of its group (an order of the same kind), and the next head is tried. When the limit of a group allows another
request, the head of the group's queue rejoins the wrapped order: under fcfs at the front (of several groups the
request that came first), under a ranked order at its rank, under an order that charges on entry with its unpaid cost.
If all requests are held, none is admitted although slots are free.

Put limits outside of other wrappers: a wrapped order does not see the requests that are held. A predictor that
learns does so separately in each queue, from the queue's first use.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator

from sim.policy.base import Order
from sim.policy.wrapper import Wrapper, sooner
from sim.request import Nanoseconds
from sim.sequence import Sequence


class LimitingWrapper(Wrapper):
    """The wrapped order without the requests that are over their limit."""

    def __init__(self, order: Callable[[], Order]) -> None:
        """`order` makes the wrapped order, and the queues of held requests."""
        super().__init__(order())
        self.listeners = (self,)
        self.new_queue = order
        self.queues: dict[str, Order] = {}  # of held requests, by group
        self.held: dict[int, Sequence] = {}
        self.returned: dict[str, Sequence] = {}  # by group, the request that has rejoined the wrapped order
        self.queued: dict[int, Sequence] = {}  # requests that have been in the queue of their group
        self.running: dict[str, dict[int, Sequence]] = {}  # by group

    def inners(self) -> Iterable[Order]:
        """The wrapped order and the queues of held requests."""
        return self.inner, *self.queues.values()

    @abstractmethod
    def may_go(self, seq: Sequence, now: Nanoseconds) -> bool:
        """Whether the limit allows this sequence to be admitted now."""

    def may_change(self, seq: Sequence, now: Nanoseconds) -> Nanoseconds | None:
        """When the limit may allow a held sequence although none arrives, is admitted or ends; None: never."""
        return None

    def group(self, seq: Sequence) -> str:
        """The group whose limit applies to this sequence: its tenant."""
        return seq.request.tenant

    def head(self, now: Nanoseconds, step: int) -> Sequence | None:
        """The first sequence of the wrapped order that the limit allows."""
        able = [(first, group) for group, first in self.firsts(now, step) if self.may_go(first, now)]
        for first, group in sorted(able, key=lambda one: -one[0].index):
            self.release(first)
            self.returned[group] = first
            self.inner.rejoin(first, now, step)
        while len(self.inner):
            seq = self.inner.head(now, step)
            if seq is None or self.may_go(seq, now):
                return seq
            self.inner.pop(seq)
            self.hold(seq, now, step)
        return None

    def firsts(self, now: Nanoseconds, step: int) -> list[tuple[str, Sequence]]:
        """(group, head of its queue) of the groups without a request that has rejoined the wrapped order."""
        queues = [(group, queue) for group, queue in self.queues.items() if len(queue) and group not in self.returned]
        heads = [(group, queue.head(now, step)) for group, queue in queues]
        return [(group, head) for group, head in heads if head is not None]

    def hold(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Into the queue of its group; one that has been there or has run goes before later ones."""
        group = self.group(seq)
        if group not in self.queues:
            self.queues[group] = self.new_queue()
        if self.returned.get(group) is seq:
            del self.returned[group]
        self.held[seq.index] = seq
        queue = self.queues[group]
        if seq.index not in self.queued:
            self.queued[seq.index] = seq
            queue.push(seq, now, step)
            if seq.serial < 0:
                return
            queue.pop(seq)
        queue.rejoin(seq, now, step)

    def release(self, seq: Sequence) -> None:
        """Out of the queue of its group."""
        del self.held[seq.index]
        self.queues[self.group(seq)].pop(seq)

    def pop(self, seq: Sequence) -> None:
        """Leave the wrapped order, or the held requests."""
        if seq.index in self.held:
            self.release(seq)
            return
        group = self.group(seq)
        if self.returned.get(group) is seq:
            del self.returned[group]
        super().pop(seq)

    def next_change(self, now: Nanoseconds, step: int) -> tuple[Nanoseconds | None, int | None]:
        """When a held request may be allowed, or the head of the wrapped order or of a group's queue may change."""
        until, steps = super().next_change(now, step) if len(self.inner) else (None, None)
        for group, first in self.firsts(now, step):
            until = sooner(until, self.may_change(first, now))
            inner_until, inner_steps = self.queues[group].next_change(now, step)
            until, steps = sooner(until, inner_until), sooner(steps, inner_steps)
        return until, steps

    def __len__(self) -> int:
        return len(self.inner) + len(self.held)

    def __iter__(self) -> Iterator[Sequence]:
        yield from self.held.values()
        yield from self.inner

    def admitted(self, seq: Sequence, step: int) -> None:
        """Count it among the running sequences of its group."""
        self.running.setdefault(self.group(seq), {})[seq.index] = seq
        super().admitted(seq, step)

    def push_back(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Stop counting it as running; it waits again."""
        self.running.get(self.group(seq), {}).pop(seq.index, None)
        super().push_back(seq, now, step)
        self.queue_up(seq, now, step)

    def rejoin(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Return from the queue of a limit around this one."""
        super().rejoin(seq, now, step)
        self.queue_up(seq, now, step)

    def queue_up(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Hold a sequence that has returned with the held ones of its group, if there are any."""
        group = self.group(seq)
        back = self.returned.get(group)
        if back is not None:
            self.inner.pop(back)
            self.hold(back, now, step)
        if group in self.queues and len(self.queues[group]):
            self.inner.pop(seq)
            self.hold(seq, now, step)

    def left(self, seq: Sequence, step: int) -> None:
        """Stop counting a sequence that ended in a slot or in the queue."""
        self.running.get(self.group(seq), {}).pop(seq.index, None)
        self.queued.pop(seq.index, None)
        super().left(seq, step)
        for queue in self.queues.values():
            for listener in queue.listeners:
                listener.left(seq, step)
