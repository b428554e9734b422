"""Shortest prefill first: before every admission pass the queue is sorted by the tokens that are still to compute.

As `shortest_prompt`, but tokens in the prefix cache do not count. Many first tokens come early, and long prompts
without a cached prefix starve. A request that shares a prefix with one before it is put off until that one has been
computed. SGLang's shortest-prefill-first.
"""

from __future__ import annotations

from policies.base.entry import Entry
from policies.base.sorted_queue import LookUpQueue
from sim.policy.base import Order, Rank
from sim.sequence import Sequence


class ShortestPrefillFirst(LookUpQueue):
    """By tokens to compute, the fewest first, then in the order of joining; those put off last."""

    cuts_one = True

    def key(self, seq: Sequence) -> Rank:
        """Whether it is put off, tokens to compute, and when it joined."""
        return seq.index in self.put_off, self.uncached(seq), self.joined[seq.index]

    def uncached(self, seq: Sequence) -> int:
        """Tokens to compute of a waiting sequence, as of the last look-up."""
        return seq.known - self.found[seq.index]

    def chunk_limit(self, seq: Sequence, budget: int, page_size: int) -> int:
        """What is left of the budget beside waiting sequences with less to compute, as far as they leave a page."""
        left = budget
        for waiting in self.queue:
            tokens = self.uncached(waiting)
            pages = -(-tokens // page_size) * page_size
            if tokens >= seq.known - seq.computed or pages > left - page_size:
                break
            left -= pages
        return left if left == budget else left // page_size * page_size


def make(seed: int) -> Order:
    """The order; `seed` is not used."""
    return ShortestPrefillFirst()


ENTRY = Entry(
    "The fewest tokens to prefill that are not in the prefix cache first.",
    make,
    source="SGLang's shortest-prefill-first",
    needs_prefix_cache=True,
)
