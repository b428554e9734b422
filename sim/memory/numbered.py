"""Pools whose pages have numbers, for an engine with real pages on a device.

The scheduler takes pages by the count. A page number is bound to a sequence when its block table is made (`table`),
or when its page enters the prefix cache; until then it is taken and unbound. So interface and decisions are those of
`sim.memory.pool` and `sim.memory.prefix`, and a run on numbered pages writes the same log.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable

from sim.memory.content import Share
from sim.memory.pool import PagePool
from sim.memory.prefix import PrefixPool
from sim.sequence import Page, Sequence

EMPTY = array("i")


class Numbers:
    """Page numbers, each in exactly one place: free, taken and unbound, in a table, or in the prefix cache.

    tables    the numbers that each sequence holds, in the order of its positions (block tables)
    released  the tables of sequences that gave their pages back, until the caller empties the list: the content of
              these pages is intact until the next launch
    """

    def __init__(self, pages: int) -> None:
        self.free = list(range(pages - 1, -1, -1))
        self.taken: list[int] = []
        self.tables: dict[Sequence, array[int]] = {}
        self.released: list[tuple[Sequence, array[int]]] = []

    def take(self, pages: int) -> None:
        """Take `pages` free numbers, unbound."""
        for _ in range(pages):
            self.taken.append(self.free.pop())

    def table(self, seq: Sequence, pages: int) -> array[int]:
        """The numbers that a sequence holds, at least `pages` of them: missing ones are bound now."""
        table = self.tables.get(seq)
        if table is None:
            table = self.tables[seq] = array("i")
        while len(table) < pages:
            table.append(self.taken.pop())
        return table

    def give_back(self, seq: Sequence, pages: int, shared: int = 0) -> None:
        """Free the numbers of a sequence but the first `shared`, and as many unbound ones as make up `pages`."""
        table = self.tables.pop(seq, EMPTY)
        self.released.append((seq, table))
        self.free += table[shared:]
        unbound = pages - (len(table) - shared)
        assert unbound >= 0, "gave back fewer pages than are bound"
        for _ in range(unbound):
            self.free.append(self.taken.pop())

    def check(self, pages: int, found: Iterable[int] = ()) -> None:
        """Check that every number from 0 to `pages` is in one place, `found` being those in the cache."""
        own = (number for seq, table in self.tables.items() for number in table[len(seq.pages.table) :])
        everywhere = sorted([*self.free, *self.taken, *own, *found])
        assert everywhere == list(range(pages)), "a page is lost, or owned twice"


class NumberedPool(PagePool):
    """`PagePool` with page numbers."""

    def __init__(self, pages: int, page_size: int) -> None:
        super().__init__(pages, page_size)
        self.numbers = Numbers(pages)

    def take(self, pages: int) -> None:
        """Take pages; their numbers are bound later."""
        super().take(pages)
        self.numbers.take(pages)

    def give_back(self, seq: Sequence, pages: int) -> None:
        """Free all pages of a sequence."""
        super().give_back(seq, pages)
        self.numbers.give_back(seq, pages)

    def table(self, seq: Sequence, positions: int) -> array[int]:
        """Page numbers of at least the first `positions` positions of a sequence, in order: int32, read only."""
        return self.numbers.table(seq, self.pages_for(positions))

    def check_numbers(self) -> None:
        """Check, at any time, that free and owned pages make up the total, by number and by count."""
        self.numbers.check(self.pages)
        assert len(self.numbers.free) == self.free, "numbers and counts disagree"

    def check(self) -> None:
        """Check what holds once every sequence has left. Raises AssertionError."""
        super().check()
        self.check_numbers()


class NumberedPrefixPool(PrefixPool):
    """`PrefixPool` with page numbers: a page shared by several sequences has one number."""

    def __init__(self, pages: int, page_size: int, share: Share = "tenant", identity: str = "") -> None:
        super().__init__(pages, page_size, share, identity)
        self.numbers = Numbers(pages)
        self.number: dict[Page, int] = {}  # of every page that can be found

    def take(self, pages: int) -> None:
        """Take pages; their numbers are bound later."""
        super().take(pages)
        self.numbers.take(pages)

    def claim(self, seq: Sequence, found: list[Page]) -> None:
        """Have a sequence hold the pages that `find` returned, by their numbers."""
        super().claim(seq, found)
        self.numbers.tables[seq] = array("i", [self.number[page] for page in found])

    def keep(self, seq: Sequence, full: int) -> None:
        """Enter full pages into the cache, with the numbers that they have in the table of the sequence."""
        kept = len(seq.pages.table)
        super().keep(seq, full)
        if len(seq.pages.table) > kept:
            table = self.numbers.table(seq, len(seq.pages.table))
            for place in range(kept, len(seq.pages.table)):
                self.number[seq.pages.table[place]] = table[place]

    def withdraw(self, seq: Sequence, pages: int) -> None:
        """Take pages out of the cache; their numbers stay in the table of the sequence."""
        for page in seq.pages.table[len(seq.pages.table) - pages :]:
            del self.number[page]
        super().withdraw(seq, pages)

    def forget(self, page: Page) -> None:
        """Evict a page, and free its number."""
        super().forget(page)
        self.numbers.free.append(self.number.pop(page))

    def give_back(self, seq: Sequence, pages: int) -> None:
        """Free all pages of a sequence; those in the cache keep their numbers."""
        shared = len(seq.pages.table)
        super().give_back(seq, pages)
        self.numbers.give_back(seq, pages - shared, shared)

    def table(self, seq: Sequence, positions: int) -> array[int]:
        """Page numbers of at least the first `positions` positions of a sequence, in order: int32, read only."""
        return self.numbers.table(seq, self.pages_for(positions))

    def warm(self, contents: Iterable[bytes]) -> None:
        """Fill the cache with the `contents` of another pool; on a device these pages hold no data."""
        super().warm(contents)
        for page in self.idle:
            self.number[page] = self.numbers.free.pop()

    def check_numbers(self) -> None:
        """Check, at any time, that free and owned pages make up the total; cached pages have numbers."""
        self.numbers.check(self.pages, self.number.values())
        assert len(self.numbers.free) + len(self.idle) == self.free, "numbers and counts disagree"
        assert len(self.number) == sum(map(len, self.known.values())), "a page without a number"

    def check(self) -> None:
        """Check what holds once every sequence has left. Raises AssertionError."""
        super().check()
        self.check_numbers()
