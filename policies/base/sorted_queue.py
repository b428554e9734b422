"""Base classes of orders that sort a plain queue before every admission pass, as SGLang's schedule policies do.

Sequences join at the end, preempted ones too, and every sort is stable: the queue keeps what earlier sorts have made
of it. Between sorts the first of the queue goes first.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterator
from math import inf

from sim.memory.content import content
from sim.policy.base import Order, Rank
from sim.request import NO_LIMIT, Nanoseconds
from sim.sequence import Sequence

MOST = 128
"""With more waiting sequences than this, some orders look no one up and leave the queue as it is."""

FEW = 32
"""A sequence with at most so many tokens found is put off if it shares at least so many with one before it."""


class SortedQueue(Order):
    """A queue that is sorted before every admission pass."""

    def __init__(self) -> None:
        self.queue: list[Sequence] = []
        self.joined: dict[int, int] = {}  # when a waiting sequence joined, as a count of those that did
        self.count = 0

    @abstractmethod
    def sort(self) -> None:
        """Sort the queue, which is not empty."""

    def arrange(self, now: Nanoseconds, step: int) -> None:
        """Sort."""
        if self.queue:
            self.sort()

    def push(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Join at the end."""
        self.queue.append(seq)
        self.joined[seq.index] = self.count
        self.count += 1

    def push_back(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Return to the end."""
        self.push(seq, now, step)

    def head(self, now: Nanoseconds, step: int) -> Sequence | None:
        """The first of the queue."""
        return self.queue[0]

    def pop(self, seq: Sequence) -> None:
        """Leave, from any place."""
        self.queue.remove(seq)
        del self.joined[seq.index]

    def next_change(self, now: Nanoseconds, step: int) -> tuple[Nanoseconds | None, int | None]:
        """Never, if a sort changes nothing until another sequence joins or leaves."""
        return None, None

    def __len__(self) -> int:
        return len(self.queue)

    def __iter__(self) -> Iterator[Sequence]:
        return iter(self.queue)


class LookUpQueue(SortedQueue):
    """A queue that is sorted by how many tokens of each waiting sequence are in the cache.

    A sequence with few tokens there that shares a prefix with one before it is put off: it finds more once that one
    has been computed.

    most     with more waiting sequences than this, no one is looked up and the queue stays as it is
    found    tokens in the cache, by index, as of the last look-up; all but the last known one at most
    put_off  indices of sequences that are put off
    """

    def __init__(self, most: int = NO_LIMIT) -> None:
        super().__init__()
        self.most = most
        self.found: dict[int, int] = {}
        self.put_off: set[int] = set()

    @abstractmethod
    def key(self, seq: Sequence) -> Rank:
        """What the queue is sorted by, the smallest first, once all have been looked up."""

    def sort(self) -> None:
        """By a look-up of all, if they are not too many."""
        self.looks_up = len(self.queue) <= self.most
        if self.looks_up:
            self.look_up()
            self.queue.sort(key=self.key)

    def look_up(self) -> None:
        """Look every waiting sequence up, in the order of the queue."""
        self.found, self.put_off = {}, set()
        beginnings: set[Hashable] = set()  # of those that are not put off
        for seq in self.queue:
            _, found = seq.pool.look_up(seq, seq.known)
            self.found[seq.index] = min(found, seq.known - 1)
            if found > FEW:
                continue
            if seq.known < FEW:
                continue
            beginning = seq.pool.domain(seq), content(seq).page(0, FEW)
            if beginning in beginnings:
                self.put_off.add(seq.index)
            else:
                beginnings.add(beginning)

    def or_last(self, seq: Sequence, value: float) -> float:
        """`value`, or what comes last for a sequence that is put off."""
        return inf if seq.index in self.put_off else value

    def next_change(self, now: Nanoseconds, step: int) -> tuple[Nanoseconds | None, int | None]:
        """After any step, as the cache may have changed."""
        return None, 1
