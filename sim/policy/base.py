"""Interfaces of a policy: who is admitted next (Order), who may enter (Admission), who is preempted (Victim).

Three independent choices. None of them reads a clock, a random number or the true output length; times (ns) and step
numbers are arguments. A step number `step` counts the steps planned so far: the step being planned has that number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Protocol

from sim.memory.pool import PagePool
from sim.policy.listener import Listener
from sim.request import Nanoseconds
from sim.sequence import Sequence

Rank = tuple[int | float | str, ...]


class Order(ABC):
    """The queue of waiting sequences of one engine, in the order in which they should be admitted.

    appends     a new sequence never goes before one that waits already
    by_urgency  the order is that of `urgency`: a displaced sequence never goes before the one that displaced it
    preempts    a waiting sequence may take the slot of a running one: `displaced` is called
    listeners   what the engine notifies of the service of its sequences, in this order; registered with the order
    looks_up    its latest `arrange` has looked every waiting sequence up in the cache
    cuts_one    while one prompt is computed in parts, no other is cut (engines with passes of one kind)
    """

    appends = False
    by_urgency = False
    preempts = False
    listeners: tuple[Listener, ...] = ()
    cuts_one = False
    looks_up = False

    @abstractmethod
    def push(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Add a sequence; called when its request arrives, at time `now`."""

    @abstractmethod
    def push_back(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Add a sequence that has been preempted, in the plan of step number `step`, at time `now`."""

    def rejoin(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Add a sequence again that a wrapping order had popped and held aside; it was not admitted meanwhile.

        By default the same as `push`. Override it in an order that keeps places or charges on entry.
        """
        self.push(seq, now, step)

    def arrange(self, now: Nanoseconds, step: int) -> None:
        """Put the queue in order for an admission pass; called once, before the first `head` of the pass."""

    @abstractmethod
    def head(self, now: Nanoseconds, step: int) -> Sequence | None:
        """The sequence to admit next; None if no waiting sequence may be admitted now (a limit of the policy).

        Called during a plan, for every admission, only while a sequence waits. Must not change the queue.
        """

    @abstractmethod
    def pop(self, seq: Sequence) -> None:
        """Remove a sequence, whatever its place: it is admitted, has ended, or is held aside by a wrapping order."""

    def refusal(self, seq: Sequence, now: Nanoseconds) -> str:
        """Why a new sequence is rejected; empty if it is not.

        Called once, when its request arrives, after all other reasons for a rejection have been ruled out.
        """
        return ""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __iter__(self) -> Iterator[Sequence]:
        """All waiting sequences, in the order of admission if nothing changed, where there is such an order."""

    def chunk_limit(self, seq: Sequence, budget: int, page_size: int) -> int | None:
        """Most positions of a pass with that budget for a sequence whose prefill goes on; None: no limit."""
        return None

    def next_change(self, now: Nanoseconds, step: int) -> tuple[Nanoseconds | None, int | None]:
        """When `head` may return another sequence although none arrives, is admitted, is preempted or ends.

        Returns (earliest such time in ns, later than now, or None; least number of steps of the present batch after
        which it may, at least 1, or None). (None, 1) plans every step anew. Called after a plan that left sequences
        waiting, and while the engine is idle and sequences wait.
        """
        return None, None

    def displaced(self, head: Sequence, running: Iterable[Sequence], now: Nanoseconds, step: int) -> Sequence | None:
        """The running sequence that should be preempted so that the head of the queue gets its slot; None: no one.

        Called during a plan if `preempts` and all slots are taken. The sequence is preempted only if the head can be
        admitted in its place. It must not go before the head when it returns to the queue; and while all running
        sequences decode, the result must not change from one step to the next.
        """
        return None


class RankedOrder(Order):
    """An order by a rank that does not change while a sequence waits; ties go by arrival. O(log n) a call."""

    def __init__(self) -> None:
        self.heap: list[tuple[Rank, int, Sequence]] = []  # some may have left from further back
        self.waiting: dict[int, tuple[Rank, int, Sequence]] = {}  # the entry of everyone who waits

    @abstractmethod
    def rank(self, seq: Sequence) -> Rank:
        """The rank of a sequence, the smallest first; called when it is added. All ranks must be comparable."""

    def push(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Add a sequence at the place of its rank."""
        entry = self.waiting[seq.index] = (self.rank(seq), seq.index, seq)
        heappush(self.heap, entry)

    def push_back(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Add a preempted sequence with a new rank."""
        self.push(seq, now, step)

    def head(self, now: Nanoseconds, step: int) -> Sequence | None:
        """The sequence with the smallest rank."""
        while self.waiting.get(self.heap[0][1]) is not self.heap[0]:
            heappop(self.heap)
        return self.heap[0][2]

    def pop(self, seq: Sequence) -> None:
        """Remove a sequence; its entry in the heap is dropped when it comes to the top."""
        del self.waiting[seq.index]

    def __len__(self) -> int:
        return len(self.waiting)

    def __iter__(self) -> Iterator[Sequence]:
        return (seq for _, _, seq in sorted(self.waiting.values()))


class Admission(ABC):
    """How many free pages a sequence needs to be admitted, and whether it takes them at once.

    reserves  pages for `positions` are taken at admission and kept to the end; otherwise taken as they are needed
    """

    reserves = False

    @abstractmethod
    def positions(self, seq: Sequence, computed: int) -> int:
        """Token positions for which pages must be free; the sequence has `computed` of them after its first step.

        Called when a sequence is queued or preempted (`computed` is then all its tokens) and when it is at the head.
        """

    def spare(self, pool: PagePool, to_come: int, step: int) -> int:
        """Pages that must stay free besides; the running sequences may still need `to_come` positions."""
        return 0

    def allows(self, seq: Sequence, running: Iterable[Sequence], pool: PagePool, step: int) -> bool:
        """Whether `seq` may join the running sequences, at least one, in the plan of step number `step`.

        Called only if the pages that it needs are free.
        """
        return True

    def next_change(self, step: int) -> int | None:
        """Least number of steps after which a refusal may end although no sequence arrives or leaves; None: never."""
        return None

    def idle(self, step: int) -> None:
        """Nothing runs as step number `step` is planned; called before any admission."""

    def retracted(self, running: Iterable[tuple[int, int]], step: int) -> None:
        """A sequence was preempted; (tokens generated, most tokens to generate) of each sequence that still runs."""

    def left(self, seq: Sequence) -> None:
        """A sequence has ended or was aborted, and is gone from slots and queue."""


@dataclass(frozen=True)
class Optimistic(Admission):
    """Admit when pages for all tokens known so far are free: a check, not a reservation.

    whole      check for all known tokens; otherwise only for those that the first step computes
    watermark  share of the pages that an admission leaves free, at least 0 and less than 1

    Raises ValueError for another watermark.
    """

    whole: bool = True
    watermark: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.watermark < 1:
            raise ValueError(f"watermark is {self.watermark}; expected at least 0 and less than 1")

    def positions(self, seq: Sequence, computed: int) -> int:
        """The tokens known so far; none for those to come."""
        return seq.known if self.whole else computed

    def spare(self, pool: PagePool, to_come: int, step: int) -> int:
        """The watermark in pages: its share of all pages and the one null page of the engine."""
        return int(self.watermark * (pool.pages + 1))


class Reserve(Admission):
    """Admit when pages for prompt and maximum output are free, and keep them: never a preemption."""

    reserves = True

    def positions(self, seq: Sequence, computed: int) -> int:
        """All positions that the sequence may ever hold."""
        return seq.target.most


class Victim(Protocol):
    """Which running sequence is preempted when pages run out."""

    def choose(self, running: dict[int, Sequence], step: int) -> Sequence:
        """One of the running sequences.

        running  by admission number, in the order of admission; at least one
        step     number of the step being planned
        """


@dataclass(frozen=True)
class LastAdmitted:
    """The last admitted: the sequences admitted first are never preempted for later ones."""

    def choose(self, running: dict[int, Sequence], step: int) -> Sequence:
        """The last in the order of admission."""
        return running[next(reversed(running))]


@dataclass(frozen=True)
class LeastUrgent:
    """The least urgent, of these the last to arrive."""

    def choose(self, running: dict[int, Sequence], step: int) -> Sequence:
        """The sequence with the largest `urgency`."""
        return max(running.values(), key=urgency)


def urgency(seq: Sequence) -> Rank:
    """The rank of priority scheduling, (priority, arrival, id): the smaller is the more urgent."""
    return seq.request.priority, seq.request.arrival, seq.request.id


@dataclass(frozen=True)
class BatchWait:
    """Prompts that fit wait for more of them, while any sequence decodes. Raises ValueError for too small values.

    steps   most steps that they wait
    tokens  they wait no longer once a step would have so many tokens, those of the decodes included
    """

    steps: int
    tokens: float

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"steps is {self.steps}; expected at least 1")
        if self.tokens <= 0:
            raise ValueError(f"tokens is {self.tokens}; expected more than 0")


@dataclass(frozen=True)
class Policy:
    """An order, an admission rule, a choice of victims, and whether prompts wait for more of them (None: no)."""

    order: Order
    admission: Admission = Optimistic()
    victim: Victim = LastAdmitted()
    batch_wait: BatchWait | None = None
