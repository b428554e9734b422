"""Paged KV memory as a number of free pages; neither the holder nor the content of a page is recorded."""

from __future__ import annotations

from sim.log.cache_use import CacheUse
from sim.sequence import Page, Sequence


class PagePool:
    """`pages` pages of `page_size` token positions each, the unit of allocation.

    Call `can_take` before `take`, and give every page back. The pool with a prefix cache (`sim.memory.prefix`) has
    the same interface; here nothing is cached.

    remembers  whether the pool has a prefix cache
    shared     positions that more than one sequence counts as its own, beyond the first
    cached     free pages whose content is still in the cache
    changes    how often the content of the cache has changed
    use        how the cache was used; None without one
    """

    remembers = False
    shared = 0
    cached = 0
    changes = 0
    use: CacheUse | None = None

    def __init__(self, pages: int, page_size: int) -> None:
        """Raises ValueError unless both counts are at least 1."""
        if pages < 1:
            raise ValueError(f"pages is {pages}; expected at least 1")
        if page_size < 1:
            raise ValueError(f"page_size is {page_size}; expected at least 1")
        self.pages = pages
        self.page_size = page_size
        self.free = pages

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

    def find(self, seq: Sequence) -> list[Page]:
        """The cached pages of the longest prefix of a sequence, in order."""
        return []

    def claim(self, seq: Sequence, found: list[Page]) -> None:
        """Have a sequence hold the pages that `find` returned."""

    def withdraw(self, seq: Sequence, pages: int) -> None:
        """Take the last `pages` cached pages of a sequence out of the cache: no step fills them."""

    def keep(self, seq: Sequence, full: int) -> None:
        """Enter the first `full` pages of a sequence, which are full, into the cache."""

    def takes_until_lost(self, found: list[Page]) -> int:
        """How many pages can be taken before one of `found` is evicted from the cache."""
        return self.free

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
