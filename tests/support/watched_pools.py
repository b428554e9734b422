"""Pools with a prefix cache that know whose content is whose, and let nobody hold another tenant's."""

from sim.memory.extents import ExtentPool
from sim.memory.prefix import PrefixPool
from sim.memory.radix import RadixPool


class Watched:
    """It knows the tenant of every page of known content; `claimed` pages were found."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.owners = {}
        self.claimed = 0

    def keep(self, seq, full):
        before = len(seq.pages.table)
        super().keep(seq, full)
        for page in seq.pages.table[before:]:
            self.owners[page] = seq.request.tenant

    def claim(self, seq, found):
        pages = found if isinstance(found, list) else found.shared
        assert {self.owners[page] for page in pages} <= {seq.request.tenant}
        self.claimed += len(found)
        super().claim(seq, found)


class WatchedBlocks(Watched, PrefixPool):
    """A pool that counts every page by itself, watched."""


class WatchedExtents(Watched, ExtentPool):
    """A pool with extents, watched."""


class WatchedRadix(RadixPool):
    """It knows which tenant has published which prefix; `claimed` pages were found."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.published = set()
        self.claimed = 0

    def prefix(self, seq, tokens):
        content = seq.request.tokens or ()
        own = tuple((seq.index, place) for place in range(len(content), tokens))
        return seq.request.tenant, content[:tokens] + own

    def publish(self, seq, tokens):
        super().publish(seq, tokens)
        self.published.update(self.prefix(seq, end) for end in range(tokens + 1))

    def pin(self, seq):
        found = seq.pages.in_tree
        assert not found or self.prefix(seq, found) in self.published
        self.claimed += found // self.page_size
        super().pin(seq)


WATCHED = {PrefixPool: WatchedBlocks, ExtentPool: WatchedExtents, RadixPool: WatchedRadix}
