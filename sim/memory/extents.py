"""A prefix cache that counts the pages which only one sequence can find: one extent a sequence, no object a page.

Pages of unknown content (prompts given by lengths, generated tokens) follow those of known content. They enter the
cache in order, leave it from the last one, and only the sequence that filled them finds them: all that are left. So a
number says which of them are cached. `sim.memory.prefix` is the specification: every decision and counter is equal.
"""

from __future__ import annotations

from sim.memory.content import Share
from sim.memory.pool import PagePool
from sim.memory.prefix import PrefixPool
from sim.sequence import Page, Sequence
from sim.subclassing import mypyc_attr


class Extent(Page):
    """The cached pages of unknown content of the sequence with index `key`, which does not run."""

    __slots__ = ("pages",)

    def __init__(self, index: int, pages: int) -> None:
        super().__init__(index, holders=0)
        self.pages = pages


class Prefix:
    """Cached pages of a prefix: `shared` ones found by content, then `own` ones of an extent, at least one."""

    __slots__ = ("extent", "own", "shared")

    def __init__(self, shared: list[Page], extent: Extent, own: int) -> None:
        self.shared = shared
        self.extent = extent
        self.own = own

    def __len__(self) -> int:
        return len(self.shared) + self.own


Found = Prefix | list[Page]


@mypyc_attr(allow_interpreted_subclasses=True)
class ExtentPool(PrefixPool):
    """`PrefixPool` with extents: the same interface, the same decisions.

    extents   those in `idle`, by the index of their sequence
    idle_own  pages in them
    held_own  pages of unknown content that are cached and held
    """

    def __init__(self, pages: int, page_size: int, share: Share = "tenant", identity: str = "") -> None:
        super().__init__(pages, page_size, share, identity)
        self.extents: dict[int, Extent] = {}
        self.idle_own = self.held_own = 0

    @property
    def cached(self) -> int:
        """Free pages whose content is still in the cache."""
        return len(self.idle) - len(self.extents) + self.idle_own

    @property
    def protected(self) -> int:
        """Cached tokens that sequences hold."""
        shared = sum(map(len, self.known.values())) - (len(self.idle) - len(self.extents))
        return (shared + self.held_own) * self.page_size

    def prefix(self, seq: Sequence, most: int) -> Found:
        """The cached pages of the longest prefix of the first `most` tokens of a sequence."""
        known = self.pages_of_content(seq.request)
        shared = super().prefix(seq, min(most, known * self.page_size)) if known else []
        extent = self.extents.get(seq.index)
        own = 0 if extent is None or len(shared) < known else min(extent.pages, most // self.page_size - known)
        return shared if extent is None or own <= 0 else Prefix(shared, extent, own)

    def claim(self, seq: Sequence, found: Found) -> None:
        """Have a sequence hold the pages that `find` returned. Raises AssertionError for a part of its extent."""
        if isinstance(found, list):
            super().claim(seq, found)
            return
        super().claim(seq, found.shared)
        assert found.own == found.extent.pages, "a sequence finds all of its pages that are cached"
        self.remove(found.extent)
        self.idle_own -= found.own
        self.free -= found.own
        self.hold_own(seq, found.own)

    def hold_own(self, seq: Sequence, pages: int) -> None:
        """A sequence holds so many pages of unknown content."""
        self.held_own += pages - seq.pages.own
        seq.pages.hold_own(pages)

    def keep(self, seq: Sequence, full: int) -> None:
        """Enter the first `full` pages of a sequence, which are full, into the cache."""
        known = self.pages_of_content(seq.request)
        if full <= known:
            super().keep(seq, full)
        elif full > known + seq.pages.own:
            assert seq.pages.own or seq.index not in self.extents, "cached pages of a sequence were not found"
            changes = self.changes
            super().keep(seq, known)
            self.changes = changes + 1
            self.hold_own(seq, full - known)

    def withdraw(self, seq: Sequence, pages: int) -> None:
        """Take the last `pages` cached pages of a sequence out of the cache; it alone holds them, and still does."""
        own = min(pages, seq.pages.own)
        self.changes += own
        self.hold_own(seq, seq.pages.own - own)
        super().withdraw(seq, pages - own)

    def kept(self, seq: Sequence) -> int:
        """How many of the pages that a sequence holds are in the cache."""
        return len(seq.pages.table) + seq.pages.own

    def others_hold(self, seq: Sequence, pages: int) -> bool:
        """Whether another sequence holds one of the last `pages` cached pages of this one."""
        return super().others_hold(seq, max(0, pages - seq.pages.own))

    def ahead_of(self, found: Found, seq: Sequence, pages: int) -> Found:
        """The pages of `found` before the first of the last `pages` cached pages of a sequence."""
        shared = found if isinstance(found, list) else found.shared
        ahead: list[Page] = super().ahead_of(shared, seq, max(0, pages - seq.pages.own))
        return found if len(ahead) == len(shared) else ahead

    def in_use(self, found: Found, without: Sequence | None = None) -> int:
        """How many of the pages found sequences hold, one of them left out."""
        return super().in_use(found if isinstance(found, list) else found.shared, without)

    def takes_until_lost(self, found: Found) -> int:
        """How many pages can be taken before one of `found` is evicted."""
        at_stake = {page for page in (found if isinstance(found, list) else found.shared) if not page.holders}
        extent, own = (None, 0) if isinstance(found, list) else (found.extent, found.own)
        taken = self.free - self.cached
        for page in self.idle if at_stake or own else ():
            if page in at_stake:
                return taken
            taken += page.pages if isinstance(page, Extent) else 1
            if page is extent:
                return taken - own
        return self.free

    def evict(self, pages: int) -> None:
        """Evict the `pages` least recently used; so many are idle."""
        while pages > 0:
            page = next(iter(self.idle))
            if not isinstance(page, Extent):
                self.forget(page)
                pages -= 1
                continue
            gone = min(pages, page.pages)
            page.pages -= gone
            self.idle_own -= gone
            self.changes += gone
            self.use.evictions += gone
            pages -= gone
            if not page.pages:
                self.remove(page)

    def remove(self, extent: Extent) -> None:
        """An extent is held again, or has been evicted."""
        del self.idle[extent]
        del self.extents[extent.key]  # type: ignore[arg-type]  # its index

    def give_back(self, seq: Sequence, pages: int) -> None:
        """Free all pages of a sequence, the last first; those that no other sequence holds stay in the cache."""
        own = seq.pages.own
        if own:
            extent = Extent(seq.index, own)
            self.extents[seq.index] = extent
            self.idle[extent] = None
            self.idle_own += own
            self.free += own
            self.hold_own(seq, 0)
        super().give_back(seq, pages - own)

    def lose_all(self) -> None:
        """Free all pages and empty the cache: the content of the memory is lost."""
        super().lose_all()
        self.extents = {}
        self.idle_own = self.held_own = 0

    def check(self) -> None:
        """Check what holds once every sequence has left: all pages are free, and every idle page is in the cache."""
        PagePool.check(self)
        assert not self.held_own, f"{self.held_own} pages of unknown content are held by no sequence"
        assert self.idle_own == sum(extent.pages for extent in self.extents.values()), "an extent is not counted"
        findable = {page for alike in self.known.values() for page in alike}
        assert findable | set(self.extents.values()) == set(self.idle), "the cached pages are not the idle ones"
