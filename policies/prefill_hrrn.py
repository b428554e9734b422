"""Highest response ratio next, counted in tokens: the largest (tokens that the engine has processed since the request
joined the queue) / (tokens of it to prefill that are not in the cache) goes first.

Short prefills go early, and the ratio of a long one grows until it goes too. As `hrrn`, but no output is predicted,
and waiting counts in work done rather than time. A request that shares a prefix with one before it is put off until
that one has been computed. With more than 128 waiting requests the queue is left as it is. SGLang's hrrn.
"""

from __future__ import annotations

from math import inf

from policies.base.entry import Entry
from policies.base.sorted_queue import MOST, LookUpQueue
from sim.policy.base import Order, Rank
from sim.policy.listener import Listener
from sim.request import Nanoseconds
from sim.sequence import Sequence


class PrefillResponseRatio(LookUpQueue, Listener):
    """By processed tokens since joining per token to compute, the largest first, then by id; those put off last."""

    def __init__(self, most: int = MOST) -> None:
        super().__init__(most)
        self.listeners = (self,)
        self.tokens = 0
        self.since: dict[int, int] = {}  # tokens processed before a waiting sequence joined

    def processed(self, tokens: int) -> None:
        """Count tokens."""
        self.tokens += tokens

    def push(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Join; the count begins."""
        super().push(seq, now, step)
        self.since[seq.index] = self.tokens

    def pop(self, seq: Sequence) -> None:
        """Leave."""
        super().pop(seq)
        del self.since[seq.index]

    def key(self, seq: Sequence) -> Rank:
        """Negated ratio, and id."""
        return self.or_last(seq, -self.ratio(seq)), seq.request.id

    def ratio(self, seq: Sequence) -> float:
        """Tokens processed since a sequence joined, per token of its prompt to compute."""
        uncached = seq.request.prompt - self.found[seq.index]
        return (self.tokens - self.since[seq.index]) / uncached if uncached > 0 else inf


def make(seed: int) -> Order:
    """The order; `seed` is not used."""
    return PrefillResponseRatio()


ENTRY = Entry(
    "The most tokens processed by the engine since joining, per uncached token to prefill, first.",
    make,
    source="SGLang's hrrn",
    needs_prefix_cache=True,
)
