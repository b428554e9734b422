"""What the state of an engine with passes of one kind counts and lists.

Each is written by the module that its line names, and reset by nobody else.
"""

from __future__ import annotations

from collections.abc import Iterable

from sim.engine.apart.sequence import ApartSequence
from sim.log.events import NO_DEMAND, Reason


class Members:
    """The sequences with a request row, by what they do.

    running  sequences of the running batch, in its order, by their admission number
    joined   how often one has got a place in that order
    last     those of the pass planned last, if it was a prefill: they join `running` with the next plan
    chunked  the one sequence whose prompt is being computed in parts
    ending   sequences whose token in flight is their last, which the engine knows
    riding   sequences whose token in flight is their last, which the engine does not know
    left     admission numbers of those that have left since the last plan
    """

    __slots__ = ("chunked", "ending", "joined", "last", "left", "riding", "running")

    def __init__(self) -> None:
        self.running: dict[int, ApartSequence] = {}
        self.joined = 0
        self.last: list[ApartSequence] = []
        self.chunked: ApartSequence | None = None
        self.ending: list[ApartSequence] = []
        self.riding: list[ApartSequence] = []
        self.left: list[int] = []

    def join(self, sequences: Iterable[ApartSequence]) -> None:
        """Sequences join the end of the running batch."""
        for seq in sequences:
            seq.place = self.joined
            self.joined += 1
            self.running[seq.serial] = seq

    def reorder(self, sequences: Iterable[ApartSequence]) -> None:
        """The running batch consists of these sequences, in this order."""
        self.running = {}
        self.join(sequences)

    def forget_last_token(self, seq: ApartSequence) -> None:
        """The last token of a sequence has come, or has been dropped."""
        for waiting in (self.ending, self.riding):
            if seq in waiting:
                waiting.remove(seq)

    def drop_ended(self) -> bool:
        """Take the sequences that have left out of the running batch; returns whether there were any."""
        if not self.left:
            return False
        before = len(self.running)
        for serial in self.left:
            self.running.pop(serial, None)
        self.left = []
        return len(self.running) < before

    def drop_ending(self) -> bool:
        """Take the sequences whose last token is in flight out of the running batch; whether there were any."""
        before = len(self.running)
        for seq in self.ending:
            self.running.pop(seq.serial, None)
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

    def pass_by(self, plans: int) -> None:
        """So many plans without a prefill are left out, as each would be the same."""
        self.wait = max(0, self.wait - plans)


class Totals:
    """Sums over the sequences with a row, and counts (`sim.engine.apart.state`).

    holders     sequences with a row
    over        those of them that have all their tokens
    computed    their positions
    until       sum over those that decode of the count of decodes with which each reaches its limit
    known       those of these that are known to produce all the tokens they may
    admissions  how many sequences have been admitted
    entries     how often one has entered the queue
    """

    __slots__ = ("admissions", "computed", "entries", "holders", "known", "over", "until")

    def __init__(self) -> None:
        self.holders = self.over = self.computed = self.until = self.known = self.admissions = self.entries = 0


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
