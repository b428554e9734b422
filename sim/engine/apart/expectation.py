"""What sequences are expected to produce still, and whether the memory lasts if they end when expected."""

from __future__ import annotations

from collections.abc import Iterable

from sim.engine.apart.sequence import ApartSequence
from sim.engine.apart.state import ApartState

ROUNDING = 1e-9
"""More than what a sum of floats over a batch can be off by, relative to it."""

RESERVE = 1
"""Positions a running sequence that must stay free at each end."""


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
    last = (*members.ending, *members.riding)
    left += sum(seq.limit for seq in last)
    left = min(left, state.config.ratio.clip * len(members.running))
    ratio = 1.0 if totals.known or any(seq.fixed_length for seq in last) else state.ratio.current
    return int(left * ratio * (1 + ROUNDING)) + 1


class Ends:
    """The expected ends of the sequences that run, are picked, or have asked for admission in one pass.

    Each entry is (tokens it is expected to produce still, positions that are free once it has ended).
    """

    def __init__(self, entries: Iterable[tuple[float, int]]) -> None:
        self.entries = sorted((entry for entry in entries if entry[0] > 0), key=lambda entry: entry[0])

    def ask(self, left: float, held: int) -> None:
        """Add a candidate, as SGLang does: before the first that ends no sooner, else before the last."""
        if left <= 0:
            return
        later = (at for at, entry in enumerate(self.entries) if left <= entry[0])
        self.entries.insert(next(later, max(len(self.entries) - 1, 0)), (left, held))

    def memory_lasts(self, free: float) -> bool:
        """Whether `free` positions are enough until each end, all that still run growing to it."""
        running = len(self.entries)
        for left, held in self.entries:
            if free - left * running <= RESERVE * running:
                return False
            free += held
            running -= 1
        return True
