"""What a sequence is expected to produce still."""

from __future__ import annotations

from sim.engine.apart.sequence import ApartSequence
from sim.engine.apart.state import ApartState

ROUNDING = 1e-9
"""More than what a sum of floats over a batch can be off by, relative to it."""


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
            for seq in state.members.running.values()
        ]
    )


def most_expected(state: ApartState) -> int:
    """No less than `expected_of_all`, in O(1) but for the sequences whose last token is in flight."""
    decoders, members, totals = state.decoders, state.members, state.totals
    left = totals.until - decoders.count * (decoders.step - 1)
    left += sum(seq.limit for seq in members.ending) + sum(seq.limit for seq in members.riding)
    left = min(left, state.config.ratio.clip * len(members.running))
    ratio = 1.0 if totals.known else state.ratio.current
    return int(left * ratio * (1 + ROUNDING)) + 1
