"""Longest prefix match: the request of whose prompt most is in the prefix cache now goes first.

What is found is not computed, so a cache is used before it is evicted: among requests that share prefixes this is the
order with the most hits (SGLang: Zheng et al., NeurIPS 2024: optimal for a batch that is there as a whole).
A request that shares nothing starves while others hit; so waiting counts too: `unit` of it makes up for one token
found. As each look costs a walk through every waiting prompt, with more than `most` waiting the order is by arrival,
as in SGLang. What one of those who wait will leave in the cache for another is not looked at.
"""

from __future__ import annotations

from policies.deadlines import duration
from policies.entry import Entry, Option
from policies.limited import whole
from sim.policy.base import Order, Rank, RankedOrder
from sim.request import Nanoseconds, Sequence


class LongestPrefix(RankedOrder):
    """By arrival, less `unit` for every token found; by arrival alone with more than `most` waiting."""

    def __init__(self, unit: Nanoseconds, most: int) -> None:
        super().__init__()
        self.unit = unit
        self.most = most
        self.first: tuple[int, Sequence] | None = None  # who is first, as the cache was after so many changes

    def rank(self, seq: Sequence) -> Rank:
        """The arrival; what is in the cache is looked up when it is asked who is first."""
        return (seq.request.arrival,)

    def push(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Join."""
        self.first = None
        super().push(seq, now, step)

    def pop(self, seq: Sequence) -> None:
        """Leave."""
        self.first = None
        super().pop(seq)

    def head(self, now: Nanoseconds, step: int) -> Sequence | None:
        """The longest match, less what the others have waited longer."""
        oldest = super().head(now, step)
        if oldest is None or not 1 < len(self) <= self.most:
            return oldest
        changes = oldest.pool.changes
        if self.first is None or self.first[0] != changes:
            everyone = (seq for _, _, seq in self.waiting.values())
            self.first = changes, min(everyone, key=lambda seq: (self.credited(seq), seq.index))
        return self.first[1]

    def credited(self, seq: Sequence) -> int:
        """When it would have had to arrive to have its place with nothing found."""
        return seq.request.arrival - self.unit * len(seq.pool.find(seq)) * seq.pool.page_size

    def next_change(self, now: Nanoseconds, step: int) -> tuple[Nanoseconds | None, int | None]:
        """After any step, if pages that somebody could find may be taken in it."""
        oldest = super().head(now, step)
        looks = oldest is not None and 1 < len(self) <= self.most and oldest.pool.cached
        return None, 1 if looks else None


def make(seed: int, unit: object, most: object) -> Order:
    """It draws nothing. Raises ValueError for a unit that is no time and a number of requests that is none."""
    return LongestPrefix(duration("unit", unit), whole("most", most))


ENTRY = Entry(
    "The longest match with the prefix cache first; each `unit` of waiting makes up for a token.",
    make,
    {"unit": Option(1_000_000, "duration"), "most": Option(128)},
    source="SGLang: Zheng et al., NeurIPS 2024",
    looks_up=True,
)
