"""The plan of a step that may verify drafts (SpeculativeBatch)."""

from __future__ import annotations

from sim.engine.batch import Batch
from sim.engine.speculative.sequence import NOT_DECODING, SpeculativeSequence
from sim.log.events import EventLog
from sim.request import Nanoseconds
from sim.sequence import Sequence


class SpeculativeBatch(Batch):
    """A plan whose verifications are entries of `work`.

    given  the tokens that a verification brings, by the index of its sequence
    """

    __slots__ = ("given",)

    def __init__(self, planned: Nanoseconds, budget: int) -> None:
        super().__init__(planned, budget)
        self.given: dict[int, int] = {}

    def count(self, seq: Sequence, start: int, tokens: int) -> None:
        """Count one entry of `work`: a verification is one decode, and so many drafts."""
        assert isinstance(seq, SpeculativeSequence)
        if not tokens or seq.proposed == NOT_DECODING or seq.over:
            super().count(seq, start, tokens)
            return
        self.tokens += tokens
        self.row.decode += 1
        self.row.context += start
        self.drafts += tokens - 1
        self.add_decode(start)

    def log_work(self, log: EventLog) -> None:
        """Log what the step computes."""
        for seq, start, tokens in self.work:
            given = self.given.get(seq.index)
            if given is not None:
                log.ran.verify(seq.index, start, tokens, given)
            elif tokens:
                log.chunk(seq.index, start, tokens)
