"""A page pool with a radix cache: full pages are found again by their content in a prefix tree.

The tree (`sim.memory.radix_tree`) holds whole pages; a sequence holds the path that it found or published, and pages
of its own for the rest. Pages that no sequence needs any longer are evicted by whole leaves, when pages run short.

For an engine whose passes are of one kind (tokens, where nothing else is said; the pool without a cache has the same
interface in `sim.memory.pool`, with a cache that finds nothing):

    avail, evictable, protected      free tokens; tokens in the tree that no sequence holds, and that some do
    match(seq, most)      look up the first `most` tokens: splits, and counts as a use; returns the tokens found
    pin(seq), unpin(seq)  hold what `match` found, or not after all
    make_room(tokens)     evict until so many are available, or no leaf is left; returns the tokens evicted
    take(pages)           take pages for positions beyond what is found or published
    publish(seq, n)       its first n tokens, computed: insert whole pages, free the pages that the tree had already,
                          hold the end of the path inserted instead of the previous one
    give_back(seq, pages) leave with so many pages, those in the tree included: free its own, unpin
    touch(seq)            look all known tokens up, for the use alone; nothing is held
    look_up(seq, most)    as `match`, for orders: returns (node, tokens), nothing is remembered
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from sim.memory.content import Share, content, domain
from sim.memory.pool import PagePool
from sim.memory.radix_node import Node
from sim.memory.radix_tree import RadixTree
from sim.sequence import Sequence


@dataclass(frozen=True)
class Path:
    """What `find` returns: so many cached pages, the last of them in a node (None: not even a root is there)."""

    node: Node | None
    pages: int

    def __len__(self) -> int:
        return self.pages


class RadixPool(PagePool):
    """A pool of pages with a radix cache.

    share     which requests may hit a page: "none" only the one that filled it, "tenant" those of its tenant, "all"
    eviction  which leaf is evicted first (`sim.memory.eviction`)
    keeps_least_urgent  under "priority" the pages of the least urgent requests are kept longest, not those of the
                        most urgent (SGLang, where it is told that low values are urgent)

    Raises ValueError for counts below 1, or an unknown `share` or `eviction`.
    """

    def __init__(
        self,
        pages: int,
        page_size: int,
        share: Share = "tenant",
        eviction: str = "lru",
        keeps_least_urgent: bool = False,
    ) -> None:
        super().__init__(pages, page_size)
        if share not in ("none", "tenant", "all"):
            raise ValueError(f"share is {share!r}; expected none, tenant or all")
        self.share = share
        self.eviction = eviction
        self.remembers = self.late = True
        self.refreshes = eviction == "lru"
        self.sign = 1 if keeps_least_urgent else -1
        self.tree = RadixTree(page_size, eviction)
        self.vacant = pages  # pages that neither a sequence nor the tree has

    # ------------------------------------------------------------------ counts

    def recount(self) -> None:
        """Set the counts of the pool by those of the tree."""
        self.free = self.vacant + self.tree.evictable // self.page_size
        self.shared = self.tree.shared
        self.changes = self.tree.changes

    @property
    def cached(self) -> int:
        """Free pages whose content is still in the cache."""
        return self.tree.evictable // self.page_size

    @property
    def avail(self) -> int:
        """Free tokens that are not in the tree."""
        return self.vacant * self.page_size

    @property
    def evictable(self) -> int:
        """Tokens in the tree that no sequence holds."""
        return self.tree.evictable

    @property
    def protected(self) -> int:
        """Tokens in the tree that sequences hold."""
        return self.tree.protected

    def domain(self, seq: Sequence) -> Hashable:
        """Which sequences may share pages with this one: those of equal domain."""
        return domain(seq.request, self.share)

    # ------------------------------------------------------------------ looking up and holding

    def look_up(self, seq: Sequence, most: int) -> tuple[Node, int]:
        """(end of the path found, its tokens) of the first `most` tokens of a sequence: split there, and used now."""
        return self.tree.look_up(self.domain(seq), content(seq), most)

    def match(self, seq: Sequence, most: int) -> int:
        """Look up the first `most` tokens of a sequence to be pinned; returns the tokens found, whole pages."""
        seq.pages.node, seq.pages.in_tree = self.look_up(seq, most)
        return seq.pages.in_tree

    def touch(self, seq: Sequence) -> None:
        """Use what is found of a sequence that waits."""
        self.look_up(seq, seq.known)

    def pin(self, seq: Sequence) -> None:
        """Hold what `match` found."""
        self.tree.pin(seq.pages.node)
        self.recount()

    def unpin(self, seq: Sequence) -> None:
        """Hold what `match` found no longer."""
        self.tree.unpin(seq.pages.node)
        seq.pages.node, seq.pages.in_tree = None, 0
        self.recount()

    # ------------------------------------------------------------------ pages

    def make_room(self, tokens: int) -> int:
        """Evict until `tokens` are available, or no leaf is left; returns the tokens evicted."""
        gone = self.tree.evict(tokens - self.avail)
        self.vacant += gone // self.page_size
        self.use.evictions += gone // self.page_size
        self.changes = self.tree.changes
        return gone

    def take(self, pages: int) -> None:
        """Take pages; leaves are evicted if there are not enough without."""
        if pages > self.vacant:
            self.make_room(pages * self.page_size)
        self.vacant -= pages
        super().take(pages)

    def publish(self, seq: Sequence, tokens: int) -> None:
        """Enter the whole pages of the first `tokens` tokens, all computed, into the tree."""
        size = self.page_size
        length = tokens - tokens % size
        prompt = seq.request.prompt // size * size
        node, had = self.tree.insert(
            self.domain(seq), content(seq), length, prompt, self.sign * seq.request.priority, seq.pages.counted
        )
        self.vacant += max(0, had - seq.pages.in_tree) // size
        self.tree.pin(node)
        if seq.pages.node is not None:
            self.tree.unpin(seq.pages.node)
        seq.pages.node, seq.pages.in_tree, seq.pages.counted = node, length, length
        self.recount()

    def give_back(self, seq: Sequence, pages: int) -> None:
        """Free the pages of a sequence, all that it holds; those in the tree stay there."""
        self.vacant += pages - seq.pages.in_tree // self.page_size
        if seq.pages.node is not None:
            self.tree.unpin(seq.pages.node)
        seq.pages.node, seq.pages.in_tree, seq.pages.counted = None, 0, 0
        self.recount()
        assert self.free <= self.pages, "gave back a page that was never taken"

    # ------------------------------------------------------------------ steps of any kind

    def find(self, seq: Sequence) -> Path:
        """The cached part of the longest prefix of a sequence, leaving at least one token to compute."""
        node, found = self.tree.find(self.domain(seq), content(seq), seq.known - 1)
        return Path(node, found // self.page_size)

    def claim(self, seq: Sequence, found: Path) -> None:
        """Have a sequence hold the pages that `find` returned."""
        self.match(seq, len(found) * self.page_size)
        self.pin(seq)

    def keep(self, seq: Sequence, full: int) -> None:
        """Enter the first `full` pages of a sequence, which are full and computed, into the cache."""
        if full * self.page_size > seq.pages.in_tree:
            self.publish(seq, full * self.page_size)

    def in_use(self, found: Path, without: Sequence | None = None) -> int:
        """How many of the pages found sequences hold, one of them left out."""
        held = set() if without is None or without.pages.node is None else set(without.pages.node.path())
        nodes = [] if found.node is None else found.node.path()
        end, pages = 0, 0
        for node in nodes:
            start, end = end, end + node.size // self.page_size
            if node.pins > (node in held):
                pages += min(end, len(found)) - start
        return pages

    def released(self, seq: Sequence, pages: int) -> int:
        """How many pages are free once a sequence has left that holds `pages`."""
        shared = 0 if seq.pages.node is None else sum(node.size for node in seq.pages.node.path() if node.pins > 1)
        return pages - shared // self.page_size

    def takes_until_lost(self, found: Path) -> int:
        """How many pages can be taken before one of `found` is evicted."""
        if found.node is None or found.node.parent is None or found.node.pins:
            return self.free
        return self.vacant + self.tree.evicted_before(found.node) // self.page_size

    def lose_all(self) -> None:
        """Free all pages and empty the cache: the content of the memory is lost."""
        self.tree = RadixTree(self.page_size, self.eviction, self.tree.changes + 1)
        self.vacant = self.pages
        self.recount()

    def check(self) -> None:
        """Check what holds once every sequence has left: no node is held, and the pages add up."""
        super().check()
        self.tree.check()
        assert self.vacant * self.page_size + self.evictable == self.pages * self.page_size, "a page is lost"
