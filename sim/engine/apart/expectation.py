"""What a sequence is expected to produce still."""

from __future__ import annotations

from sim.engine.apart.sequence import ApartSequence
from sim.engine.apart.state import ApartState


def expected(state: ApartState, seq: ApartSequence) -> float:
    """Tokens that a running sequence is expected to produce still: all if its length is known, else a share."""
    left = min(seq.limit - state.outputs(seq), state.config.clip)
    return left * (1.0 if seq.fixed_length else state.ratio.current)


def end_of(state: ApartState, seq: ApartSequence) -> tuple[float, int]:
    """(tokens a sequence is expected to produce still, positions that are free once it has ended)."""
    ratio = 1.0 if seq.fixed_length else state.ratio.current
    outputs = state.outputs(seq)
    return seq.limit * ratio - outputs, seq.request.prompt + outputs
