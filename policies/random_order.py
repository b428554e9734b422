"""Random: every request draws its place when it arrives.

A yardstick: what an order gains must show against no order at all. The mean wait is that of first come, first
served where lengths are drawn alike, the spread of waits is wider. Each request draws from a stream of its own
name, so who else is there changes nobody's draw; a preempted one keeps its draw, and one that is sent to an engine
again, by its client or to another pool, draws anew.
"""

from __future__ import annotations

from random import Random

from policies.entry import Entry
from sim.policy.base import Order, Rank, RankedOrder
from sim.request import Sequence


class RandomOrder(RankedOrder):
    """Ranked by a number drawn in the request's own stream."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed = seed

    def rank(self, seq: Sequence) -> Rank:
        """From 0 to 1."""
        kind = f"random.{seq.sent}" if seq.sent else "random"
        return (Random(f"{self.seed}/{kind}/{seq.request.id}").random(),)


def make(seed: int) -> Order:
    """The seed of the run names the streams."""
    return RandomOrder(seed)


ENTRY = Entry("In a random order, drawn once per request.", make)
