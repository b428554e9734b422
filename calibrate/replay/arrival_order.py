"""The order of arrival, for runs without another policy: first come, first served, also after a preemption."""

from __future__ import annotations

from sim.policy.base import Rank, RankedOrder
from sim.sequence import Sequence


class ByArrival(RankedOrder):
    """First come, first served."""

    appends = True

    def rank(self, seq: Sequence) -> Rank:
        """The same for all: ties are broken by arrival."""
        return ()
