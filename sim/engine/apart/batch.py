"""What one pass computes (ApartBatch): prefills, or one token of each running sequence, or both where mixed."""

from __future__ import annotations

from collections.abc import Iterator

from sim.engine.apart.sequence import ApartSequence
from sim.engine.batch import Batch
from sim.request import Nanoseconds


class ApartBatch(Batch):
    """The work of one pass.

    prefills   (sequence, start, tokens) of those that it prefills, in order
    decoders   the running sequences that decode in it, in order; `riders`: those of them that have ended unseen
    prefilled  (sequence, its stay, its positions) of those whose prefill it completes
    ending     sequences whose last token the last planned pass brings
    retracted  sequences that gave up their memory for it, in order; `displaced`: for a more urgent one
    aborted    sequences that ended because there was no memory for them
    """

    __slots__ = ("aborted", "decoders", "displaced", "ending", "prefilled", "prefills", "retracted", "riders")

    def __init__(self, planned: Nanoseconds) -> None:
        super().__init__(planned, 0)
        self.prefills: list[tuple[ApartSequence, int, int]] = []
        self.decoders: list[ApartSequence] = []
        self.riders: list[ApartSequence] = []
        self.prefilled: list[tuple[ApartSequence, int, int]] = []
        self.ending: list[ApartSequence] = []
        self.retracted: list[ApartSequence] = []
        self.displaced: list[ApartSequence] = []
        self.aborted: list[ApartSequence] = []

    def computes(self) -> Iterator[tuple[ApartSequence, int, int]]:
        """(sequence, start, tokens) of all that do not simply decode."""
        yield from self.prefills
        for seq in self.riders:
            yield seq, seq.computed, 1
