"""Shortest prompt: the request whose prefill is the least work goes first.

Needs no prediction, and many first tokens come early. Blind to output lengths, so no substitute for shortest job
first where prompts and outputs are unrelated; starves long prompts, so pair it with `max_wait`. A preempted
sequence counts with what it had generated too: all of it is computed again.
"""

from __future__ import annotations

from policies.entry import Entry
from sim.policy.base import Order, Rank, RankedOrder
from sim.request import Sequence


class ShortestPrompt(RankedOrder):
    """Ranked by the tokens that a prefill has to compute."""

    def rank(self, seq: Sequence) -> Rank:
        """The tokens known so far."""
        return (seq.known,)


def make(seed: int) -> Order:
    """It draws nothing, so the seed does not matter."""
    return ShortestPrompt()


ENTRY = Entry("Shortest prefill first.", make)
