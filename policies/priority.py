"""Priority: the most urgent class first, within it by arrival.

A smaller number is more urgent. Starves the rest while urgent requests keep coming.
"""

from __future__ import annotations

from policies.entry import Entry
from sim.policy.base import LeastUrgent, Order, Rank, RankedOrder, urgency
from sim.request import Sequence


class PriorityOrder(RankedOrder):
    """Ranked by priority, arrival and id, as vLLM does."""

    by_urgency = True

    def rank(self, seq: Sequence) -> Rank:
        """(priority, arrival, id)."""
        return urgency(seq)


def make(seed: int) -> Order:
    """An order by priority; it draws nothing, so the seed does not matter."""
    return PriorityOrder()


ENTRY = Entry("The most urgent class first, within it by arrival.", make, victim=LeastUrgent())
