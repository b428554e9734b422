"""Which leaf of a radix tree is evicted first: the one with the smallest rank. Times are ticks of the tree's clock.

    lru   least recently used               lfu       fewest hits, of these by lru
    mru   most recently used                slru      leaves hit at most once before the others, each by lru
    fifo  first created                     priority  lowest priority of the requests that published it, by lru
    filo  last created

These are the values of SGLang's radix_eviction_policy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush

from sim.memory.radix_node import Node

Rank = tuple[int, ...]

RANKS: dict[str, Callable[[Node], Rank]] = {
    "lru": lambda leaf: (leaf.time,),
    "lfu": lambda leaf: (leaf.hits, leaf.time),
    "fifo": lambda leaf: (leaf.created, leaf.time),
    "filo": lambda leaf: (-leaf.created, leaf.time),
    "mru": lambda leaf: (-leaf.time,),
    "slru": lambda leaf: (leaf.hits >= 2, leaf.time),
    "priority": lambda leaf: (leaf.priority, leaf.time),
}


class Evictable:
    """The leaves that no sequence holds, by rank. A leaf is entered again when its rank changes: O(log n)."""

    def __init__(self, policy: str) -> None:
        """Raises ValueError for an unknown policy."""
        if policy not in RANKS:
            raise ValueError(f"eviction is {policy!r}; expected {', '.join(RANKS)}")
        self.rank = RANKS[policy]
        self.heap: list[tuple[Rank, int, Node]] = []  # some entries no longer count
        self.entered = 0
        self.count = 0

    def enter(self, leaf: Node) -> None:
        """Add a leaf, or move it to its present rank."""
        if leaf.entry is None:
            self.count += 1
        self.entered += 1
        leaf.entry = (self.rank(leaf), self.entered, leaf)
        heappush(self.heap, leaf.entry)
        if len(self.heap) > 2 * self.count + 64:
            self.heap = list(self.entries())
            heapify(self.heap)

    def remove(self, leaf: Node) -> None:
        """Take a leaf out: it is held again, or no longer a leaf."""
        leaf.entry = None
        self.count -= 1

    def pop(self) -> Node:
        """Take out the leaf with the smallest rank; there is one."""
        while True:
            entry = heappop(self.heap)
            leaf = entry[2]
            if leaf.entry is entry:
                self.remove(leaf)
                return leaf

    def entries(self) -> Iterator[tuple[Rank, int, Node]]:
        """The entries that count, in no order."""
        return (entry for entry in self.heap if entry[2].entry is entry)
