"""Longest prefix match: the request with the most prompt tokens in the prefix cache goes first.

Cached tokens are not computed again, and requests use a cached prefix before it is evicted: among requests that share
prefixes this order has the most hits (SGLang: Zheng et al., NeurIPS 2024: optimal if all requests are present from
the start). A request without cached tokens starves while others hit, so waiting counts too: each `unit` of it
outweighs one cached token. A lookup walks through every waiting prompt, so with more than `most` waiting requests the
order is by arrival, as in SGLang. Prefixes that waiting requests will add to the cache are not considered.
"""

from __future__ import annotations

from policies.base.entry import Entry, Option
from policies.base.option_values import duration, whole
from sim.policy.base import Order, Rank, RankedOrder
from sim.request import Nanoseconds
from sim.sequence import Sequence


class LongestPrefix(RankedOrder):
    """By arrival minus `unit` for every cached token; by arrival alone with more than `most` waiting sequences."""

    def __init__(self, unit: Nanoseconds, most: int) -> None:
        super().__init__()
        self.unit = unit
        self.most = most
        self.first: tuple[int, Sequence] | None = None  # (number of changes of the cache, head after them)

    def rank(self, seq: Sequence) -> Rank:
        """The arrival; the cache is looked up in `head`."""
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
        """The sequence with the earliest arrival after the credit for cached tokens."""
        oldest = super().head(now, step)
        if oldest is None or not 1 < len(self) <= self.most:
            return oldest
        changes = oldest.pool.changes
        if self.first is None or self.first[0] != changes:
            waiting = (seq for _, _, seq in self.waiting.values())
            self.first = changes, min(waiting, key=lambda seq: (self.credited(seq), seq.index))
        return self.first[1]

    def credited(self, seq: Sequence) -> int:
        """The arrival minus the credit for cached tokens, in ns."""
        return seq.request.arrival - self.unit * len(seq.pool.find(seq)) * seq.pool.page_size

    def next_change(self, now: Nanoseconds, step: int) -> tuple[Nanoseconds | None, int | None]:
        """After any step, if cached pages may be evicted in it; never otherwise."""
        oldest = super().head(now, step)
        looks = oldest is not None and 1 < len(self) <= self.most and oldest.pool.cached
        return None, 1 if looks else None


def make(seed: int, unit: object, most: object) -> Order:
    """The order with these options; `seed` is not used. Raises ValueError for an impossible option."""
    return LongestPrefix(duration("unit", unit), whole("most", most))


ENTRY = Entry(
    "The longest match with the prefix cache first; each `unit` of waiting makes up for a token.",
    make,
    {"unit": Option(1_000_000, "duration"), "most": Option(128)},
    source="SGLang: Zheng et al., NeurIPS 2024",
    needs_prefix_cache=True,
)
