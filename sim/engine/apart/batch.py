"""What one pass computes (ApartBatch): prefills, or one token of each running sequence, or both where mixed."""

from __future__ import annotations

from sim.engine.apart.sequence import ApartSequence
from sim.engine.batch import Batch
from sim.request import Nanoseconds


class ApartBatch(Batch):
    """The work of one pass; `work` holds its prefills, and sequences that ride along although they have ended.

    decoders   the running sequences that decode in it, in order
    prefilled  (sequence, its stay, its positions) of those whose prefill it completes
    retracted  sequences that gave up their memory for it, in order; `displaced`: for a more urgent one
    aborted    sequences that ended because there was no memory for them
    """

    __slots__ = ("aborted", "decoders", "displaced", "prefilled", "retracted")

    def __init__(self, planned: Nanoseconds) -> None:
        super().__init__(planned, 0)
        self.decoders: list[ApartSequence] = []
        self.prefilled: list[tuple[ApartSequence, int, int]] = []
        self.retracted: list[ApartSequence] = []
        self.displaced: list[ApartSequence] = []
        self.aborted: list[ApartSequence] = []
