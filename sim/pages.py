"""Pools whose pages have numbers: which page of the device holds what, for an engine that really has pages.

The scheduler takes pages by the count and never asks which. A number is bound to a sequence when its row of a step
is made (`table`), or when its page becomes findable by content; until then it is `taken`, and nobody's. So the pools
of `sim.memory` and `sim.prefix` keep their seam and their decisions, and a run on numbered pages logs the same.
Knows nothing of devices.
"""

from __future__ import annotations

from collections.abc import Iterable

from sim.memory import PagePool
from sim.prefix import Page, PrefixPool, Share
from sim.request import Sequence


class Numbers:
    """Every page number is in one place: free, taken and not bound yet, or a sequence's own.

    `released` lists (sequence, its own numbers from the first position on) of those that gave pages back, until
    somebody empties it: what was in them is there until the next step is launched.
    """

    def __init__(self, pages: int) -> None:
        self.free = list(range(pages - 1, -1, -1))
        self.taken: list[int] = []
        self.own: dict[int, list[int]] = {}
        self.released: list[tuple[Sequence, list[int]]] = []

    def take(self, pages: int) -> None:
        """So many free numbers are taken."""
        for _ in range(pages):
            self.taken.append(self.free.pop())

    def bind(self, seq: Sequence, pages: int) -> list[int]:
        """The sequence's own numbers, so many of them at least."""
        own = self.own.setdefault(seq.index, [])
        while len(own) < pages:
            own.append(self.taken.pop())
        return own

    def promote(self, seq: Sequence) -> int:
        """The number of the sequence's first own page, which is not its own any more."""
        own = self.own.get(seq.index)
        return own.pop(0) if own else self.taken.pop()

    def give_back(self, seq: Sequence, pages: int, shared: list[int]) -> None:
        """The sequence's own pages are free again, and as many not bound yet as make up the count."""
        own = self.own.pop(seq.index, [])
        self.released.append((seq, shared + own))
        unbound = pages - len(own)
        assert unbound >= 0, "gave back fewer pages than are bound"
        self.free += own
        for _ in range(unbound):
            self.free.append(self.taken.pop())

    def check(self, pages: int, found: Iterable[int] = ()) -> None:
        """Every number from 0 to `pages` is in exactly one place, `found` being where else numbers are."""
        everywhere = sorted([*self.free, *self.taken, *(n for own in self.own.values() for n in own), *found])
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
        self.numbers.give_back(seq, pages, [])

    def table(self, seq: Sequence, positions: int) -> list[int]:
        """The numbers of the pages that hold the first `positions` positions of a sequence, in order."""
        return self.numbers.bind(seq, self.pages_for(positions))[: self.pages_for(positions)]

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
        self.number: dict[Page, int] = {}

    def take(self, pages: int) -> None:
        """Take pages; which ones is bound later."""
        super().take(pages)
        self.numbers.take(pages)

    def keep(self, seq: Sequence, full: int) -> None:
        """Pages that become findable have a number from now on, whoever holds them."""
        kept = len(seq.table)
        super().keep(seq, full)
        for page in seq.table[kept:]:
            self.number[page] = self.numbers.promote(seq)

    def forget(self, page: Page) -> None:
        """Its number is free for any use."""
        super().forget(page)
        self.numbers.free.append(self.number.pop(page))

    def give_back(self, seq: Sequence, pages: int) -> None:
        """A sequence returns all its pages; those that can be found keep their number."""
        shared = [self.number[page] for page in seq.table]
        super().give_back(seq, pages)
        self.numbers.give_back(seq, pages - len(shared), shared)

    def table(self, seq: Sequence, positions: int) -> list[int]:
        """The numbers of the pages that hold the first `positions` positions of a sequence, in order."""
        shared = [self.number[page] for page in seq.table]
        needed = self.pages_for(positions)
        return (shared + self.numbers.bind(seq, needed - len(shared)))[:needed]

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
