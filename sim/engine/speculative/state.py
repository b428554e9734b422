"""State of an engine that speculates: pages cover the positions of drafts, too (SpeculativeState)."""

from __future__ import annotations

from sim.engine.batch import Batch
from sim.engine.speculative.sequence import SpeculativeSequence
from sim.engine.state import EngineState
from sim.sequence import Sequence


class SpeculativeState(EngineState):
    """The pages of a sequence cover all positions that it has ever computed in its stay, rejected ones included."""

    def covered(self, seq: Sequence, positions: int) -> int:
        """Positions for which a running sequence holds pages when it has computed so many."""
        assert isinstance(seq, SpeculativeSequence)
        return max(seq.covered, positions)

    def growth(self, seq: Sequence, tokens: int) -> int:
        """Pages that `tokens` more positions of a running sequence begin."""
        assert isinstance(seq, SpeculativeSequence)
        size, held = self.pool.page_size, max(seq.covered, seq.computed)
        return -(-max(held, seq.computed + tokens) // size) + (-held // size)

    def give(self, batch: Batch, seq: Sequence, tokens: int) -> None:
        """Have the step compute `tokens` positions of a sequence, in pages of its own."""
        super().give(batch, seq, tokens)
        assert isinstance(seq, SpeculativeSequence)
        seq.cover(seq.computed + tokens)

    def take_back(self, positions: int) -> None:
        """So many positions of running sequences were computed for drafts that are rejected."""
        self.totals.computed -= positions
