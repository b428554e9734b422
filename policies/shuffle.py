"""Shuffle: the queue is shuffled anew before every admission pass.

A baseline for other orders, as `random` is, but a request keeps no place: every pass draws from all that wait, so the
wait still to come does not depend on the wait so far. SGLang's random.
"""

from __future__ import annotations

from random import Random

from policies.base.entry import Entry
from policies.base.sorted_queue import SortedQueue
from sim.policy.base import Order
from sim.request import Nanoseconds


class Shuffle(SortedQueue):
    """Shuffled once a pass with numbers from one stream."""

    def __init__(self, stream: Random) -> None:
        super().__init__()
        self.stream = stream

    def sort(self) -> None:
        """Shuffle."""
        self.stream.shuffle(self.queue)

    def next_change(self, now: Nanoseconds, step: int) -> tuple[Nanoseconds | None, int | None]:
        """With any step."""
        return None, 1


def make(seed: int) -> Order:
    """The order, with a stream of its own from `seed`."""
    return Shuffle(Random(f"{seed}/shuffle"))


ENTRY = Entry("In a random order, drawn anew before every admission pass.", make, source="SGLang's random")
