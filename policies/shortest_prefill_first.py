"""Shortest prefill first: before every admission pass the queue is sorted by the tokens that are still to compute.

As `shortest_prompt`, but tokens in the prefix cache do not count. Many first tokens come early, and long prompts
without a cached prefix starve. A request that shares a prefix with one before it is put off until that one has been
computed. SGLang's shortest-prefill-first.
"""

from __future__ import annotations

from policies.base.entry import Entry
from policies.base.sorted_queue import LookUpQueue
from sim.policy.base import Order, Rank
from sim.request import Sequence


class ShortestPrefillFirst(LookUpQueue):
    """By tokens to compute, the fewest first, then in the order of joining; those put off last."""

    cuts_one = True

    def key(self, seq: Sequence) -> Rank:
        """Whether it is put off, tokens to compute, and when it joined."""
        return seq.index in self.put_off, self.uncached(seq), self.joined[seq.index]

    def chunk_limit(self, seq: Sequence, budget: int, page_size: int) -> int | None:
        """What is left of the budget, whole pages, beside the waiting sequences with less to compute; one page at least."""
        if budget < 2 * page_size:
            return None
        kept = 0
        for other in self.queue:
            uncached = self.uncached(other)
            pages = -(-uncached // page_size) * page_size
            if uncached >= seq.known - seq.computed or kept + pages > budget - page_size:
                break
            kept += pages
        return (budget - kept) // page_size * page_size if kept else None


def make(seed: int) -> Order:
    """The order; `seed` is not used."""
    return ShortestPrefillFirst()


ENTRY = Entry(
    "The fewest tokens to prefill that are not in the prefix cache first.",
    make,
    source="SGLang's shortest-prefill-first",
    needs_prefix_cache=True,
)
