"""Random: every request gets a random rank when it arrives.

A baseline for other orders. Where lengths are identically distributed the mean wait is that of first come, first
served, with a wider spread. The rank is drawn from a stream named by the request's id, so it does not depend on other
requests. A preempted request keeps its rank; one that is sent to an engine again, by its client or to another pool,
draws a new one.
"""

from __future__ import annotations

from random import Random

from policies.base.entry import Entry
from sim.policy.base import Order, Rank, RankedOrder
from sim.sequence import Sequence


class RandomOrder(RankedOrder):
    """Ranked by a number drawn from the request's own stream."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed = seed

    def rank(self, seq: Sequence) -> Rank:
        """A number from 0 to below 1."""
        kind = f"random.{seq.target.leg.sent}" if seq.target.leg.sent else "random"
        return (Random(f"{self.seed}/{kind}/{seq.request.id}").random(),)


def make(seed: int) -> Order:
    """A random order; `seed` seeds the streams of all requests."""
    return RandomOrder(seed)


ENTRY = Entry("In a random order, drawn once per request.", make)
