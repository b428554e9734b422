"""Paged KV memory as a count of pages. Knows neither who holds a page nor what is in it."""

from __future__ import annotations

from sim.log.cache_use import CacheUse
from sim.request import Page, Sequence


class PagePool:
    """`pages` pages of `page_size` token positions each, the unit of allocation.

    Ask before you take: `can_take(n)` / `take(n)`, and give every page back. The pool that remembers what
    is in a page (`sim.memory.prefix`) has the same interface; here nothing is ever found again.

    remembers  whether pages can be found again by their content
    shared     positions that more than one sequence counts as its own, beyond the first
    cached     free pages whose content could still be found
    changes    how often it has changed what can be found
    use        how the cache was used; None where nothing is remembered
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
        """Pages that hold so many positions of one sequence: the ceiling, never less."""
        return -(-positions // self.page_size)

    def can_take(self, pages: int) -> bool:
        """Whether so many pages are free."""
        return pages <= self.free

    def take(self, pages: int) -> None:
        """Take pages; the caller has asked `can_take` first."""
        self.free -= pages
        assert self.free >= 0, "took a page that was not free"

    def find(self, seq: Sequence) -> list[Page]:
        """The pages that hold a prefix of this sequence."""
        return []

    def claim(self, seq: Sequence, found: list[Page]) -> None:
        """The sequence holds the pages it found."""

    def keep(self, seq: Sequence, full: int) -> None:
        """The first `full` pages of the sequence are full."""

    def takes_until_lost(self, found: list[Page]) -> int:
        """How many pages can be taken before one of these can no longer be found."""
        return self.free

    def give_back(self, seq: Sequence, pages: int) -> None:
        """A sequence returns all its pages."""
        self.free += pages
        assert self.free <= self.pages, "gave back a page that was never taken"

    def lose_all(self) -> None:
        """The memory is gone, and everybody who held a page of it."""
        self.free = self.pages
        self.shared = 0

    def check(self) -> None:
        """Nothing is held: what holds once every sequence has left."""
        assert self.free == self.pages, f"{self.used} pages were never given back"
        assert self.shared == 0, f"{self.shared} shared positions are counted that are not there"
