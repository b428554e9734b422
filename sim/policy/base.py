"""The seams a policy fills: who goes next (Order), who may enter (Admission), who must leave (Victim).

Three separate axes, each a small object. None of them sees a clock, a random number or the true output
length; times and step counts are arguments. Knows no policy by name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Protocol

from sim.memory.pool import PagePool
from sim.request import Nanoseconds, Sequence

Rank = tuple[int | float | str, ...]


class Order(ABC):
    """The queue of waiting sequences, in the order in which they should be admitted.

    appends         a newcomer never goes before one who waits already
    by_urgency      it goes by `urgency`: a sequence driven out for a more urgent one does not come back before it
    preempts        whoever waits may take the slot of a running sequence (`displaced`)
    counts_service  it wants to hear of admissions and of decoding (the hooks at the end)
    """

    appends = False
    by_urgency = False
    preempts = False
    counts_service = False

    @abstractmethod
    def push(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """A sequence joins the queue; `step` steps have ended so far."""

    @abstractmethod
    def push_back(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """A preempted sequence returns to the queue."""

    def rejoin(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """A sequence that an order around this one popped and held aside is back; it was not admitted meanwhile.

        By default it joins as a newcomer does: for an order with places to keep, or charges on entry, to override.
        """
        self.push(seq, now, step)

    @abstractmethod
    def head(self, now: Nanoseconds, step: int) -> Sequence | None:
        """Who goes next, asked only while someone waits; None when nobody may (a limit of the policy's own)."""

    @abstractmethod
    def pop(self, seq: Sequence) -> None:
        """A sequence leaves the queue, from whatever place."""

    def refusal(self, seq: Sequence, now: Nanoseconds) -> str:
        """Why a newcomer is turned away, empty if it is not: asked once, last of all, when it arrives."""
        return ""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __iter__(self) -> Iterator[Sequence]:
        """Everyone who waits, in the order they would go if nothing changed, where there is such an order."""

    def next_change(self, now: Nanoseconds, step: int) -> tuple[Nanoseconds | None, int | None]:
        """When the answer of `head` may change although nobody comes, goes or ends.

        Returns the earliest such time, later than now (or None), and the fewest steps of the present batch after
        which it may (or None). An order that cannot say returns (None, 1).
        """
        return None, None

    def displaced(self, head: Sequence, running: Iterable[Sequence], now: Nanoseconds, step: int) -> Sequence | None:
        """Who has to leave so that the head of the queue gets a slot; None: nobody.

        Asked when all slots are taken; whoever is named leaves only if the head can be admitted in its place. It must
        not come before the head when it returns to the queue, and while all of the running ones decode, neither a
        None nor a name may become another name.
        """
        return None

    def admitted(self, seq: Sequence, step: int) -> None:
        """A sequence got a slot, before step number `step`."""

    def token(self, seq: Sequence, step: int) -> None:
        """A sequence got a token in the step before `step`, outside of plain decoding."""

    def decoding(self, seq: Sequence, step: int) -> None:
        """From step number `step` on, a sequence gets one token a step."""

    def paused(self, seq: Sequence, step: int) -> None:
        """From step number `step` on, it no longer does: it ended, was preempted or got no budget."""

    def left(self, seq: Sequence, step: int) -> None:
        """A sequence ended, before step number `step`."""


class RankedOrder(Order):
    """An order by a rank that does not change while a sequence waits; ties by arrival."""

    def __init__(self) -> None:
        self.heap: list[tuple[Rank, int, Sequence]] = []  # some may have left from further back
        self.waiting: dict[int, tuple[Rank, int, Sequence]] = {}  # the entry of everyone who waits

    @abstractmethod
    def rank(self, seq: Sequence) -> Rank:
        """The smaller goes first; asked once, when the sequence joins or returns."""

    def push(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Join at the place the rank gives."""
        entry = self.waiting[seq.index] = (self.rank(seq), seq.index, seq)
        heappush(self.heap, entry)

    def push_back(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Join again, ranked again."""
        self.push(seq, now, step)

    def head(self, now: Nanoseconds, step: int) -> Sequence | None:
        """The smallest rank."""
        while self.waiting.get(self.heap[0][1]) is not self.heap[0]:
            heappop(self.heap)
        return self.heap[0][2]

    def pop(self, seq: Sequence) -> None:
        """Leave; the entry in the heap is dropped when it comes to the top."""
        del self.waiting[seq.index]

    def __len__(self) -> int:
        return len(self.waiting)

    def __iter__(self) -> Iterator[Sequence]:
        return (seq for _, _, seq in sorted(self.waiting.values()))


class Admission(ABC):
    """How much memory a sequence must find, and whether it takes all of it at once.

    reserves  pages for the whole life are taken at admission and kept; else they are taken as needed
    """

    reserves = False

    @abstractmethod
    def positions(self, seq: Sequence, computed: int) -> int:
        """Token positions for which pages must be free; `computed` will be after the first step."""

    def spare(self, pool: PagePool, to_come: int, step: int) -> int:
        """Pages that must stay free beside them while anybody runs, who may still need `to_come` positions."""
        return 0

    def allows(self, seq: Sequence, running: Iterable[Sequence], pool: PagePool, step: int) -> bool:
        """Whether the newcomer may join these (at least one), before step number `step`; its pages are free."""
        return True

    def next_change(self, step: int) -> int | None:
        """The fewest steps after which a no may turn into a yes although nobody comes, goes or ends; None: never."""
        return None

    def idle(self, step: int) -> None:
        """Nothing runs, before step number `step`."""

    def retracted(self, running: Iterable[tuple[int, int]], step: int) -> None:
        """Somebody was preempted; (generated, most to generate) of those who still run."""

    def left(self, seq: Sequence) -> None:
        """A sequence ended, or its client gave up."""


@dataclass(frozen=True)
class Optimistic(Admission):
    """Admit when pages for all tokens known so far are free: a check, not a reservation.

    whole      check for all known tokens; else only for those the first step computes
    watermark  share of the pages that an admission leaves free
    """

    whole: bool = True
    watermark: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.watermark < 1:
            raise ValueError(f"watermark is {self.watermark}; expected at least 0 and less than 1")

    def positions(self, seq: Sequence, computed: int) -> int:
        """Prompt and regenerated tokens; nothing for those to come."""
        return seq.known if self.whole else computed

    def spare(self, pool: PagePool, to_come: int, step: int) -> int:
        """The watermark in pages, of all pages and the engine's one null page."""
        return int(self.watermark * (pool.pages + 1))


class Reserve(Admission):
    """Admit when pages for prompt and maximum output are free, and keep them: never a preemption."""

    reserves = True

    def positions(self, seq: Sequence, computed: int) -> int:
        """Everything the sequence may ever hold."""
        return seq.most


class Victim(Protocol):
    """Who gives its pages back when they run out."""

    def choose(self, running: dict[int, Sequence], step: int) -> Sequence:
        """One of the running sequences, which come in the order they were admitted; step number `step` is planned."""


@dataclass(frozen=True)
class LastAdmitted:
    """The last admitted: it has the least to lose, and the head of the line is never the victim of its tail."""

    def choose(self, running: dict[int, Sequence], step: int) -> Sequence:
        """The last in the order of admission."""
        return running[next(reversed(running))]


@dataclass(frozen=True)
class LeastUrgent:
    """The least urgent, of these the last to arrive: priority decides who keeps its pages."""

    def choose(self, running: dict[int, Sequence], step: int) -> Sequence:
        """The largest urgency."""
        return max(running.values(), key=urgency)


def urgency(seq: Sequence) -> Rank:
    """What priority scheduling goes by, (priority, arrival, id); the smaller is the more urgent."""
    return seq.request.priority, seq.request.arrival, seq.request.id


@dataclass(frozen=True)
class Policy:
    """One choice on each axis."""

    order: Order
    admission: Admission = Optimistic()
    victim: Victim = LastAdmitted()
