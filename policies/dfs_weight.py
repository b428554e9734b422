"""Depth first by weight: requests that share prefixes follow each other, the largest family first.

Before every admission pass the radix cache is walked depth first. The weight of a node is the number of waiting
requests whose cached prefixes end in it or below it; heavier children go first, and the requests that end in a node
after those below it. So a cached prefix is used by all that share it before the next one is. SGLang's dfs-weight.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from policies.base.entry import Entry
from policies.base.sorted_queue import SortedQueue
from sim.memory.radix_node import Node
from sim.policy.base import Order
from sim.request import Nanoseconds
from sim.sequence import Sequence


class DepthFirst(SortedQueue):
    """In the order of a walk through the radix cache; without one, in the order of joining."""

    looks_up = True

    def sort(self) -> None:
        """By a look-up of all."""
        ends: dict[Node | None, list[Sequence]] = {}
        for seq in self.queue:
            ends.setdefault(seq.pool.look_up(seq, seq.known)[0], []).append(seq)
        weights: dict[Node, int] = {}
        roots = []
        for end, there in ends.items():
            node = end
            while node is not None:
                if node not in weights and node.parent is None:
                    roots.append(node)
                weights[node] = weights.get(node, 0) + len(there)
                node = node.parent
        self.queue = [seq for node in (*walk(roots, weights), None) for seq in ends.get(node, ())]

    def next_change(self, now: Nanoseconds, step: int) -> tuple[Nanoseconds | None, int | None]:
        """After any step, as the cache may have changed."""
        return None, 1


def walk(roots: Iterable[Node], weights: Mapping[Node, int]) -> Iterator[Node]:
    """The nodes that have a weight, each after its children, the heavier of these first."""

    def lightest_first(nodes: Iterable[Node]) -> list[tuple[Node, bool]]:
        heaviest_first = sorted((node for node in nodes if node in weights), key=weights.__getitem__, reverse=True)
        return [(node, False) for node in heaviest_first[::-1]]

    stack = lightest_first(roots)
    while stack:
        node, children_done = stack.pop()
        if children_done:
            yield node
        else:
            stack += [(node, True), *lightest_first(node.children.values())]


def make(seed: int) -> Order:
    """The order; `seed` is not used."""
    return DepthFirst()


ENTRY = Entry(
    "In the order of a walk through the radix cache, subtrees with more waiting requests first.",
    make,
    source="SGLang's dfs-weight",
    needs_prefix_cache=True,
    needs_radix_cache=True,
)
