"""What the state of an engine with passes of one kind counts and lists.

Each is written by the module that its line names, and reset by nobody else.
"""

from __future__ import annotations

from sim.engine.apart.sequence import ApartSequence
from sim.log.events import NO_DEMAND, Reason


class Members:
    """The sequences with a request row, by what they do.

    running    sequences of the running batch, in its order
    last       those of the pass planned last, if it was a prefill: they join `running` with the next plan
    chunked    the one sequence whose prompt is being computed in parts
    ending     sequences whose token in flight is their last, which the engine knows
    riding     sequences whose token in flight is their last, which the engine does not know
    some_left  one has ended since the last plan
    """

    __slots__ = ("chunked", "ending", "last", "riding", "running", "some_left")

    def __init__(self) -> None:
        self.running: list[ApartSequence] = []
        self.last: list[ApartSequence] = []
        self.chunked: ApartSequence | None = None
        self.ending: list[ApartSequence] = []
        self.riding: list[ApartSequence] = []
        self.some_left = False

    def forget_last_token(self, seq: ApartSequence) -> None:
        """The last token of a sequence has come, or has been dropped."""
        for waiting in (self.ending, self.riding):
            if seq in waiting:
                waiting.remove(seq)

    def drop_ended(self) -> bool:
        """Take ended sequences out of the running batch; returns whether there were any."""
        before = len(self.running)
        if self.some_left:
            self.some_left = False
            self.running = [seq for seq in self.running if not seq.ended]
        return len(self.running) < before


class Gate:
    """Whether a prefill is tried (`sim.engine.apart.admission`).

    full      none is tried until a sequence leaves; `obstacle`: what it was that made the batch full
    wait      plans to come without a prefill
    sorts     how often the queue has been sorted for one
    """

    __slots__ = ("full", "obstacle", "sorts", "wait")

    def __init__(self) -> None:
        self.full = False
        self.obstacle: Reason = NO_DEMAND
        self.wait = self.sorts = 0

    def close(self, obstacle: Reason) -> None:
        """Try none until a sequence leaves."""
        self.full, self.obstacle = True, obstacle

    def open(self) -> None:
        """Try one with the next plan."""
        self.full = False

    def held_back(self) -> bool:
        """Whether the plan tries none, because one was in one of the latest passes."""
        if not self.wait:
            return False
        self.wait -= 1
        return True


class Totals:
    """Sums over the sequences with a row, and counts (`sim.engine.apart.state`).

    holders     sequences with a row
    over        those of them that have all their tokens
    computed    their positions
    admissions  how many sequences have been admitted
    entries     how often one has entered the queue
    """

    __slots__ = ("admissions", "computed", "entries", "holders", "over")

    def __init__(self) -> None:
        self.holders = self.over = self.computed = self.admissions = self.entries = 0


class Passes:
    """The passes planned so far (`sim.engine.apart.progress`).

    planned  how many
    decode   the latest that decoded, and `decode_before` the one before it; -1 before the first
    begun    tokens of the prefill that the running batch began as; `extended`: of the latest prefill
    """

    __slots__ = ("begun", "decode", "decode_before", "extended", "planned")

    def __init__(self) -> None:
        self.planned = self.begun = self.extended = 0
        self.decode = self.decode_before = -1

    def plan(self, decodes: bool) -> int:
        """One more pass is planned; returns its number."""
        if decodes:
            self.decode_before, self.decode = self.decode, self.planned
        self.planned += 1
        return self.planned - 1

    def repeat(self, passes: int) -> None:
        """The latest pass, which decodes, is repeated so often."""
        if passes:
            self.planned += passes
            self.decode, self.decode_before = self.planned - 1, self.planned - 2
