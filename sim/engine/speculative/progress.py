"""What a step does to sequences that speculate: the prompt brings one token, a verification one or more."""

from __future__ import annotations

from sim.engine import progress
from sim.engine.speculative.batch import SpeculativeBatch
from sim.engine.speculative.sequence import NOT_DECODING, SpeculativeSequence
from sim.engine.speculative.state import SpeculativeState


def advance(state: SpeculativeState, batch: SpeculativeBatch, drafts: int) -> None:
    """Count what a step that has just been planned will have computed and brought; `drafts` are drafted behind it."""
    state.advance(batch.tokens, 1)
    for seq, _, tokens in batch.work:
        assert isinstance(seq, SpeculativeSequence)
        if not tokens or not seq.compute(tokens) or seq.over:
            continue
        if seq.proposed == NOT_DECODING:
            progress.take_token(state, seq, batch)
        else:
            verify(state, seq, batch, tokens)
        if seq.computed == seq.target.goal:
            end(state, seq, batch)
        else:
            seq.propose(drafts)


def verify(state: SpeculativeState, seq: SpeculativeSequence, batch: SpeculativeBatch, tokens: int) -> None:
    """The step verifies the drafts of a sequence."""
    step = state.decoders.step
    given = seq.verify(tokens, step)
    batch.given[seq.index] = given
    state.take_back(tokens - given)
    for listener in state.listeners:
        for _ in range(given):
            listener.token(seq, step)


def end(state: SpeculativeState, seq: SpeculativeSequence, batch: SpeculativeBatch) -> None:
    """The step brings the last token of a sequence."""
    del state.catching_up[seq.serial]
    if state.pool.remembers:
        state.pool.keep(seq, seq.computed // state.pool.page_size)
    progress.end(state, seq, batch)
