"""What one pass computes (ApartBatch): prefills, or one token of each running sequence, or both where mixed."""

from __future__ import annotations

from sim.engine.apart.sequence import ApartSequence
from sim.engine.batch import Batch
from sim.request import Nanoseconds


class ApartBatch(Batch):
    """The work of one pass.

    prefills   (sequence, start, tokens) of those that it prefills, in order
    decoding   how many running sequences decode in it; `riders`: those of them that have ended unseen
    beside     the running sequences that decode in it, in order, if it prefills too
    prefilled  (sequence, its stay, its positions) of those whose prefill it completes
    ending     sequences whose last token the last planned pass brings
    retracted  sequences that gave up their memory for it, in order; `displaced`: for a more urgent one
    aborted    sequences that ended because there was no memory for them
    """

    __slots__ = (
        *("aborted", "beside", "decoding", "displaced", "ending"),
        *("prefilled", "prefills", "retracted", "riders"),
    )

    def __init__(self, planned: Nanoseconds) -> None:
        super().__init__(planned, 0)
        self.prefills: list[tuple[ApartSequence, int, int]] = []
        self.decoding = 0
        self.beside: list[ApartSequence] = []
        self.riders: list[ApartSequence] = []
        self.prefilled: list[tuple[ApartSequence, int, int]] = []
        self.ending: list[ApartSequence] = []
        self.retracted: list[ApartSequence] = []
        self.displaced: list[ApartSequence] = []
        self.aborted: list[ApartSequence] = []
