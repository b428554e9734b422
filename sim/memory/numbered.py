"""Pools whose pages have numbers: which page of the device holds what, for an engine that really has pages.

The scheduler takes pages by the count and never asks which. A number is bound to a sequence when its row of a step
is made (`table`), or when its page becomes findable by content; until then it is taken, and nobody's. So the pools
of `sim.memory.pool` and `sim.memory.prefix` keep their seam and their decisions, and a run on numbered pages logs the
same. Knows nothing of devices.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable

from sim.memory.pool import PagePool
from sim.memory.prefix import PrefixPool, Share
from sim.request import Page, Sequence

EMPTY = array("i")


class Numbers:
    """Every page number is in one place: free, taken and not bound yet, in a table, or elsewhere with the pool.

    `tables` are the numbers that each sequence holds, in the order of its positions. `released` lists the tables of
    those that gave their pages back, until somebody empties it: what was in them is there until the next launch.
    """

    def __init__(self, pages: int) -> None:
        self.free = list(range(pages - 1, -1, -1))
        self.taken: list[int] = []
        self.tables: dict[Sequence, array[int]] = {}
        self.released: list[tuple[Sequence, array[int]]] = []

    def take(self, pages: int) -> None:
        """So many free numbers are taken."""
        for _ in range(pages):
            self.taken.append(self.free.pop())

    def table(self, seq: Sequence, pages: int) -> array[int]:
        """The numbers a sequence holds, so many of them at least: what is missing is bound now."""
        table = self.tables.get(seq)
        if table is None:
            table = self.tables[seq] = array("i")
        while len(table) < pages:
            table.append(self.taken.pop())
        return table

    def give_back(self, seq: Sequence, pages: int, shared: int = 0) -> None:
        """A sequence's numbers but the first `shared` are free, and as many unbound ones as make up `pages`."""
        table = self.tables.pop(seq, EMPTY)
        self.released.append((seq, table))
        self.free += table[shared:]
        unbound = pages - (len(table) - shared)
        assert unbound >= 0, "gave back fewer pages than are bound"
        for _ in range(unbound):
            self.free.append(self.taken.pop())

    def check(self, pages: int, found: Iterable[int] = ()) -> None:
        """Every number from 0 to `pages` is in exactly one place, `found` being where the pool has some."""
        own = (number for seq, table in self.tables.items() for number in table[len(seq.table) :])
        everywhere = sorted([*self.free, *self.taken, *own, *found])
        assert everywhere == list(range(pages)), "a page is lost, or owned twice"


class NumberedPool(PagePool):
    """`PagePool` with numbers."""

    def __init__(self, pages: int, page_size: int) -> None:
        super().__init__(pages, page_size)
        self.numbers = Numbers(pages)

    def take(self, pages: int) -> None:
        """Take pages; which ones is bound later."""
        super().take(pages)
        self.numbers.take(pages)

    def give_back(self, seq: Sequence, pages: int) -> None:
        """A sequence returns all its pages, whatever their numbers."""
        super().give_back(seq, pages)
        self.numbers.give_back(seq, pages)

    def table(self, seq: Sequence, positions: int) -> array[int]:
        """The numbers of the pages of a sequence's first `positions` positions, in order, perhaps more; read only."""
        return self.numbers.table(seq, self.pages_for(positions))

    def check_numbers(self) -> None:
        """At any time: free + owned = total, by number and by count."""
        self.numbers.check(self.pages)
        assert len(self.numbers.free) == self.free, "numbers and counts disagree"

    def check(self) -> None:
        """Nothing is held."""
        super().check()
        self.check_numbers()


class NumberedPrefixPool(PrefixPool):
    """`PrefixPool` with numbers: a page found by several sequences has one, and is free when the last has left."""

    def __init__(self, pages: int, page_size: int, share: Share = "tenant", identity: str = "") -> None:
        super().__init__(pages, page_size, share, identity)
        self.numbers = Numbers(pages)
        self.number: dict[Page, int] = {}  # of every page that can be found

    def take(self, pages: int) -> None:
        """Take pages; which ones is bound later."""
        super().take(pages)
        self.numbers.take(pages)

    def claim(self, seq: Sequence, found: list[Page]) -> None:
        """The sequence holds these pages from now on, by the numbers they have."""
        super().claim(seq, found)
        self.numbers.tables[seq] = array("i", [self.number[page] for page in found])

    def keep(self, seq: Sequence, full: int) -> None:
        """Pages that become findable keep the number they have in the sequence's table."""
        kept = len(seq.table)
        super().keep(seq, full)
        if len(seq.table) > kept:
            table = self.numbers.table(seq, len(seq.table))
            for place in range(kept, len(seq.table)):
                self.number[seq.table[place]] = table[place]

    def forget(self, page: Page) -> None:
        """Its number is free for any use."""
        super().forget(page)
        self.numbers.free.append(self.number.pop(page))

    def give_back(self, seq: Sequence, pages: int) -> None:
        """A sequence returns all its pages; those that can be found keep their number."""
        shared = len(seq.table)
        super().give_back(seq, pages)
        self.numbers.give_back(seq, pages - shared, shared)

    def table(self, seq: Sequence, positions: int) -> array[int]:
        """The numbers of the pages of a sequence's first `positions` positions, in order, perhaps more; read only."""
        return self.numbers.table(seq, self.pages_for(positions))

    def warm(self, contents: Iterable[bytes]) -> None:
        """Start from what another pool left; on a device there is nothing in these pages."""
        super().warm(contents)
        for page in self.idle:
            self.number[page] = self.numbers.free.pop()

    def check_numbers(self) -> None:
        """At any time: free + owned = total, by number and by count; every findable page has a number."""
        self.numbers.check(self.pages, self.number.values())
        assert len(self.numbers.free) + len(self.idle) == self.free, "numbers and counts disagree"
        assert len(self.number) == sum(map(len, self.known.values())), "a page without a number"

    def check(self) -> None:
        """Nothing is held."""
        super().check()
        self.check_numbers()
