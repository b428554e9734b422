"""Shortest prompt: the request with the fewest tokens to prefill goes first.

Needs no prediction, and many first tokens come early. Output lengths are ignored, so it does not replace shortest job
first where prompts and outputs are unrelated. Long prompts starve: pair it with `max_wait`. The tokens that a
preempted sequence had generated count too, as they are computed again.
"""

from __future__ import annotations

from operator import attrgetter

from policies.base.entry import Entry
from sim.policy.base import Order, Rank, RankedOrder
from sim.policy.fixed_rank import FixedRank
from sim.sequence import Sequence


class ShortestPrompt(RankedOrder):
    """Ranked by the tokens to prefill."""

    def rank(self, seq: Sequence) -> Rank:
        """Prompt and generated tokens."""
        return (seq.known,)

    def fixed_rank(self) -> FixedRank:
        """The prompt, and each token generated."""
        return FixedRank("rank", attrgetter("prompt"), per_generated=1)


def make(seed: int) -> Order:
    """An order by prompt length; `seed` is not used."""
    return ShortestPrompt()


ENTRY = Entry("Shortest prefill first.", make)
