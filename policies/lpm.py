"""Longest prefix match: before every admission pass the queue is sorted by the tokens that are in the prefix cache.

`longest_prefix` weighs waiting against matches; here only matches count, and a request without any can starve. A
request that shares a prefix with one before it is put off until that one has been computed. With more than 128
waiting requests the queue is left as it is. SGLang's lpm (Zheng et al., NeurIPS 2024).
"""

from __future__ import annotations

from policies.base.entry import Entry
from policies.base.sorted_queue import MOST, LookUpQueue
from sim.policy.base import Order, Rank
from sim.sequence import Sequence


class LongestPrefixMatch(LookUpQueue):
    """By tokens found, the most first; those put off last."""

    def key(self, seq: Sequence) -> Rank:
        """Negated tokens found."""
        return (self.or_last(seq, -self.found[seq.index]),)


def make(seed: int) -> Order:
    """The order; `seed` is not used."""
    return LongestPrefixMatch(MOST)


ENTRY = Entry(
    "The most tokens in the prefix cache first; sharers of an uncached prefix after the first of them.",
    make,
    source="SGLang's lpm: Zheng et al., NeurIPS 2024",
    needs_prefix_cache=True,
)
