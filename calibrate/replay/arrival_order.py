"""The order of arrival, for runs that know no other policy: who came first goes first, also after a preemption."""

from __future__ import annotations

from sim.policy.base import Rank, RankedOrder
from sim.request import Sequence


class ByArrival(RankedOrder):
    """First come, first served."""

    appends = True

    def rank(self, seq: Sequence) -> Rank:
        """All alike: ties are by arrival."""
        return ()
