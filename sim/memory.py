"""Paged KV memory as a count of pages. Knows neither who holds a page nor what is in it."""

from __future__ import annotations


class PagePool:
    """`pages` pages of `page_size` token positions each, the unit of allocation.

    Ask before you take: `can_take(n)` / `take(n)`, and give every page back.
    """

    __slots__ = ("free", "page_size", "pages")

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

    def give_back(self, pages: int) -> None:
        """Return pages taken before."""
        self.free += pages
        assert self.free <= self.pages, "gave back a page that was never taken"

    def check(self) -> None:
        """Nothing is held: what holds once every sequence has left."""
        assert self.free == self.pages, f"{self.used} pages were never given back"
