"""What a sequence is expected to produce still."""

from __future__ import annotations

from sim.engine.apart.sequence import ApartSequence
from sim.engine.apart.state import ApartState


def expected(state: ApartState, seq: ApartSequence) -> float:
    """Tokens that a running sequence is expected to produce still: all if its length is known, else a share."""
    left = min(seq.limit - state.outputs(seq), state.config.ratio.clip)
    return left * (1.0 if seq.fixed_length else state.ratio.current)


def end_of(state: ApartState, seq: ApartSequence) -> tuple[float, int]:
    """(tokens a sequence is expected to produce still, positions that are free once it has ended)."""
    ratio = 1.0 if seq.fixed_length else state.ratio.current
    outputs = state.outputs(seq)
    return seq.limit * ratio - outputs, seq.request.prompt + outputs


def expected_of_all(state: ApartState) -> float:
    """The sum of `expected` over the running sequences, in their order: float sums depend on it."""
    step, clip, ratio = state.decoders.step, state.config.ratio.clip, state.ratio.current
    committed = state.log.steps
    flying = state.passes.decode >= committed
    return sum(
        [
            min(seq.until - step + (flying or seq.since > committed), clip) * (1.0 if seq.fixed_length else ratio)
            if seq.decoding
            else expected(state, seq)
            for seq in state.members.running
        ]
    )
