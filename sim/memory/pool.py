"""Paged KV memory as a number of free pages; neither the holder nor the content of a page is recorded."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from sim.log.cache_use import CacheUse
from sim.sequence import Sequence
from sim.subclassing import mypyc_attr

Found = Any
"""What `find` returns and the same pool reads again; its length is a number of pages."""


@mypyc_attr(allow_interpreted_subclasses=True)
class PagePool:
    """`pages` pages of `page_size` token positions each, the unit of allocation.

    Call `can_take` before `take`, and give every page back. The pool with a prefix cache (`sim.memory.prefix`) has
    the same interface; here nothing is cached.

    remembers  whether the pool has a prefix cache
    late       whether pages enter it once they are computed; otherwise with the plan of the step that fills them
    shared     positions that more than one sequence counts as its own, beyond the first
    cached     free pages whose content is still in the cache
    changes    how often the content of the cache has changed
    refreshes  whether what was looked up last is evicted last, so that looking up what waits keeps it there
    use        how the cache was used; nothing is counted without one
    """

    def __init__(self, pages: int, page_size: int) -> None:
        """Raises ValueError unless both counts are at least 1."""
        if pages < 1:
            raise ValueError(f"pages is {pages}; expected at least 1")
        if page_size < 1:
            raise ValueError(f"page_size is {page_size}; expected at least 1")
        self.pages = pages
        self.page_size = page_size
        self.free = pages
        self.remembers = self.late = self.refreshes = False
        self.shared = self.changes = 0
        self.use = CacheUse()

    @property
    def cached(self) -> int:
        """Free pages whose content is still in the cache."""
        return 0

    @property
    def used(self) -> int:
        """Pages taken and not yet given back."""
        return self.pages - self.free

    def pages_for(self, positions: int) -> int:
        """Pages that hold `positions` positions of one sequence, rounded up."""
        return -(-positions // self.page_size)

    def can_take(self, pages: int) -> bool:
        """Whether `pages` pages are free."""
        return pages <= self.free

    def take(self, pages: int) -> None:
        """Take pages; `can_take` must be true. Raises AssertionError otherwise."""
        self.free -= pages
        assert self.free >= 0, "took a page that was not free"

    def find(self, seq: Sequence) -> Found:
        """The cached pages of the longest prefix of a sequence."""
        return ()

    def look_up(self, seq: Sequence, most: int) -> tuple[Any, int]:
        """(place in the cache, tokens found) of the first `most` tokens of a sequence."""
        return None, 0

    def domain(self, seq: Sequence) -> Hashable:
        """Which sequences may share pages with this one: those of equal domain."""
        return seq.index

    def claim(self, seq: Sequence, found: Found) -> None:
        """Have a sequence hold the pages that `find` returned."""

    def withdraw(self, seq: Sequence, pages: int) -> None:
        """Take the last `pages` cached pages of a sequence out of the cache: no step fills them."""

    def keep(self, seq: Sequence, full: int) -> None:
        """Enter the first `full` pages of a sequence, which are full, into the cache."""

    def kept(self, seq: Sequence) -> int:
        """How many of the pages that a sequence holds are in the cache."""
        return 0

    def others_hold(self, seq: Sequence, pages: int) -> bool:
        """Whether another sequence holds one of the last `pages` cached pages of this one."""
        return False

    def ahead_of(self, found: Found, seq: Sequence, pages: int) -> Found:
        """The pages of `found` before the first of the last `pages` cached pages of a sequence."""
        return found

    def in_use(self, found: Found, without: Sequence | None = None) -> int:
        """How many of the pages found sequences hold, one of them left out."""
        return 0

    def released(self, seq: Sequence, pages: int) -> int:
        """How many pages are free once a sequence has left that holds `pages`."""
        return pages

    def takes_until_lost(self, found: Found) -> int:
        """How many pages can be taken before one of `found` is evicted from the cache."""
        return self.free

    # ------------------------------------------------------------------ in tokens, for passes of one kind

    @property
    def avail(self) -> int:
        """Free tokens that are not cached."""
        return (self.free - self.cached) * self.page_size

    @property
    def evictable(self) -> int:
        """Cached tokens that no sequence holds."""
        return self.cached * self.page_size

    @property
    def protected(self) -> int:
        """Cached tokens that sequences hold."""
        return 0

    def match(self, seq: Sequence, most: int) -> int:
        """Look up the first `most` tokens of a sequence to be pinned; returns the tokens found, whole pages."""
        return 0

    def pin(self, seq: Sequence) -> None:
        """Hold what `match` found."""

    def unpin(self, seq: Sequence) -> None:
        """Hold what `match` found no longer."""

    def make_room(self, tokens: int) -> int:
        """Evict until `tokens` are available, or nothing is left to evict; returns the tokens evicted."""
        return 0

    def publish(self, seq: Sequence, tokens: int) -> None:
        """Enter the whole pages of the first `tokens` tokens, all computed, into the cache."""

    def touch(self, seq: Sequence) -> None:
        """Use what is found of a sequence that waits."""

    # ------------------------------------------------------------------ the end

    def give_back(self, seq: Sequence, pages: int) -> None:
        """Free the pages of a sequence, all that it holds."""
        self.free += pages
        assert self.free <= self.pages, "gave back a page that was never taken"

    def lose_all(self) -> None:
        """Free all pages: the content of the memory is lost, and no sequence holds a page."""
        self.free = self.pages
        self.shared = 0

    def check(self) -> None:
        """Check what holds once every sequence has left: all pages are free. Raises AssertionError."""
        assert self.free == self.pages, f"{self.used} pages were never given back"
        assert self.shared == 0, f"{self.shared} shared positions are counted that are not there"
