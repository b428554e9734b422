"""Priority: the most urgent class first, within it by arrival.

A smaller number is more urgent. Less urgent requests starve while urgent ones keep arriving.
"""

from __future__ import annotations

from policies.base.entry import Entry
from sim.policy.base import LeastUrgent, Order, Rank, RankedOrder, urgency
from sim.policy.fixed_rank import FixedRank
from sim.sequence import Sequence


class PriorityOrder(RankedOrder):
    """Ranked by priority, arrival and id, as in vLLM."""

    by_urgency = True

    def rank(self, seq: Sequence) -> Rank:
        """(priority, arrival, id)."""
        return urgency(seq)

    def fixed_rank(self) -> FixedRank:
        """By urgency."""
        return FixedRank("urgency")


def make(seed: int) -> Order:
    """An order by priority; `seed` is not used."""
    return PriorityOrder()


ENTRY = Entry("The most urgent class first, within it by arrival.", make, victim=LeastUrgent())
