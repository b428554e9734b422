"""A radix tree of cached prefixes: whole pages, found by their content, evicted leaf by leaf.

Every domain, in which content may be shared, has a root of its own. A node is split where a look-up or an insertion
leaves its content, and at the end of a prompt. A sequence pins the path to a node, which then is not evicted. The
clock of the tree counts uses: a look-up and an insertion give the nodes of their path new times from the root down.
Modelled on SGLang 0.5.23.
"""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heapify, heappop, heappush

from sim.memory.content import Content, first_page, halves
from sim.memory.eviction import Evictable
from sim.memory.radix_node import Node


class RadixTree:
    """A tree of pages of `page_size` tokens. Lengths are tokens, multiples of it. Raises ValueError as `Evictable`.

    evictable  tokens in nodes that no sequence holds
    protected  tokens in the other nodes
    shared     tokens of these, counted for every sequence that holds them but one
    changes    how often content was added or evicted
    """

    def __init__(self, page_size: int, eviction: str = "lru", changes: int = 0) -> None:
        self.page_size = page_size
        self.roots: dict[Hashable, Node] = {}
        self.leaves = Evictable(eviction)
        self.evictable = self.protected = self.shared = 0
        self.changes = changes
        self.clock = 0

    def tick(self) -> int:
        """A new time."""
        self.clock += 1
        return self.clock

    def root(self, domain: Hashable) -> Node:
        """The root of a domain."""
        root = self.roots.get(domain)
        if root is None:
            root = self.roots[domain] = Node(None, domain, [], 0, 0)
        return root

    # ------------------------------------------------------------------ looking up

    def find(self, domain: Hashable, content: Content, most: int) -> tuple[Node | None, int]:
        """(deepest node with content in common, tokens in common), of the first `most` tokens; changes nothing."""
        node, at, size = self.roots.get(domain), 0, self.page_size
        most -= most % size
        while node is not None and at < most:
            child = node.children.get(content.page(at, size))
            if child is None:
                break
            agreed = min(content.agreement(at, child.runs), most - at)
            at += agreed - agreed % size
            node = child
            if agreed < child.size:
                break
        return node, at

    def look_up(self, domain: Hashable, content: Content, most: int) -> tuple[Node, int]:
        """(end of the path in common, its tokens), of the first `most` tokens: split there, and used now."""
        node, at, size = self.root(domain), 0, self.page_size
        most -= most % size
        while at < most:
            child = node.children.get(content.page(at, size))
            if child is None:
                break
            agreed = min(content.agreement(at, child.runs), most - at)
            agreed -= agreed % size
            at += agreed
            if agreed < child.size:
                node = self.split(child, agreed)
                break
            node = child
        self.touch(node)
        return node, at

    def touch(self, node: Node) -> None:
        """Use the path to a node now."""
        for each in node.path():
            self.use(each)

    def use(self, node: Node) -> None:
        """Give a node a new time."""
        node.time = self.tick()
        if node.entry is not None:
            self.leaves.enter(node)

    # ------------------------------------------------------------------ adding

    def insert(
        self, domain: Hashable, content: Content, length: int, prompt: int, priority: int = 0, counted: int = 0
    ) -> tuple[Node, int]:
        """Add the first `length` tokens; returns (end of their path, tokens that were there before).

        prompt    the path is split here, if it is inside; what comes before then gets `priority` + 1
        counted   so many tokens count the sequence among their hits already
        """
        node, at, size = self.root(domain), 0, self.page_size
        while at < length:
            child = node.children.get(content.page(at, size))
            if child is None:
                break
            agreed = min(content.agreement(at, child.runs), length - at)
            agreed -= agreed % size
            self.use(child)
            node = child if agreed == child.size else self.split(child, agreed)
            at += agreed
        had = at
        if at < length:
            node = self.add(node, content, at, length)
        if 0 < prompt < length:
            self.split_at(node, length, prompt)
        self.publish(node, length, prompt, priority, counted)
        return node, had

    def add(self, parent: Node, content: Content, start: int, end: int) -> Node:
        """A new leaf with the tokens from `start` to `end`."""
        key = content.page(start, self.page_size)
        leaf = Node(parent, key, content.part(start, end), end - start, self.tick())
        if parent.entry is not None:
            self.leaves.remove(parent)
        parent.children[key] = leaf
        self.evictable += leaf.size
        self.leaves.enter(leaf)
        self.changes += 1
        return leaf

    def split(self, node: Node, at: int) -> Node:
        """Split a node after its first `at` tokens; returns the new upper part, the node itself is the lower one."""
        assert node.parent is not None, "a root has no content"
        first, rest = halves(node.runs, at)
        upper = Node(node.parent, node.key, first, at, self.tick())
        upper.created, upper.hits, upper.priority, upper.pins = node.created, node.hits, node.priority, node.pins
        node.parent.children[node.key] = upper
        node.runs, node.size, node.parent = rest, node.size - at, upper
        node.key = first_page(rest, self.page_size)
        upper.children[node.key] = node
        self.use(node)
        return upper

    def split_at(self, node: Node, end: int, at: int) -> None:
        """Split the path to a node, which ends after `end` tokens, after the first `at`."""
        while end - node.size > at:
            end -= node.size
            assert node.parent is not None, "split outside of the path"
            node = node.parent
        if at < end and end - node.size < at:
            self.split(node, at - end + node.size)

    def publish(self, node: Node, length: int, prompt: int, priority: int, counted: int) -> None:
        """Count a sequence that has published the path to a node, `length` tokens, in priorities and hits."""
        end = length
        while node.parent is not None:
            node.priority = max(node.priority, priority + (end <= prompt < length))
            node.hits += end > counted
            if node.entry is not None:
                self.leaves.enter(node)
            end -= node.size
            node = node.parent

    # ------------------------------------------------------------------ holding

    def pin(self, node: Node) -> None:
        """Hold the path to a node."""
        while node.parent is not None:
            if node.pins:
                self.shared += node.size
            else:
                self.evictable -= node.size
                self.protected += node.size
                if node.entry is not None:
                    self.leaves.remove(node)
            node.pins += 1
            node = node.parent

    def unpin(self, node: Node) -> None:
        """Hold the path to a node no longer."""
        while node.parent is not None:
            node.pins -= 1
            if node.pins:
                self.shared -= node.size
            else:
                self.evictable += node.size
                self.protected -= node.size
                if not node.children:
                    self.leaves.enter(node)
            node = node.parent

    # ------------------------------------------------------------------ evicting

    def evict(self, tokens: int) -> int:
        """Evict leaves until at least `tokens` are gone, or no leaf can go; returns how many tokens went."""
        gone = 0
        while gone < tokens and self.leaves.count:
            leaf = self.leaves.pop()
            gone += leaf.size
            self.evictable -= leaf.size
            self.changes += 1
            parent = leaf.parent
            assert parent is not None, "a root is no leaf"
            del parent.children[leaf.key]
            if parent.children or parent.pins:
                continue
            if parent.parent is not None:
                self.leaves.enter(parent)
            elif self.roots.get(parent.key) is parent:
                del self.roots[parent.key]
        return gone

    def evicted_before(self, node: Node) -> int:
        """How many tokens `evict` takes before those of a node, which no sequence holds."""
        heap = list(self.leaves.entries())
        heapify(heap)
        left: dict[Node, int] = {}  # children of the parents of evicted nodes
        gone = serial = 0
        while True:
            leaf = heappop(heap)[2]
            if leaf is node:
                return gone
            gone += leaf.size
            parent = leaf.parent
            assert parent is not None, "a root is no leaf"
            left[parent] = left.get(parent, len(parent.children)) - 1
            if not left[parent] and not parent.pins and parent.parent is not None:
                serial -= 1
                heappush(heap, (self.leaves.rank(parent), serial, parent))

    def check(self) -> None:
        """Check what holds once every sequence has left: no node is held, and the counts are those of the nodes."""
        assert self.protected == self.shared == 0, "a node is still held"
        nodes = list(self.roots.values())
        tokens = leaves = 0
        for node in nodes:
            assert not node.pins, "a node is still held"
            assert node.size % self.page_size == 0, "a node ends inside a page"
            nodes += node.children.values()
            tokens += node.size
            leaves += node.parent is not None and not node.children
        assert tokens == self.evictable, "the tokens in the tree are not those counted"
        assert leaves == self.leaves.count, "the leaves are not those that can be evicted"
