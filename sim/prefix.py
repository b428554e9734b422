"""The page pool that remembers: full pages are found again by their content, the prefix cache.

A page's key stands for everything that makes its content the same: the tokens of the whole prefix up to
its end, the adapter, and the domain in which pages may be shared. Keys chain: each is made from the one
before it and the page's own tokens, so a change to an early token changes all that follow. Only full pages
are kept. A page that nobody holds stays findable until it is taken: pages never kept are taken first, then
the least recently used.

Content comes from token ids, from the block ids of a trace, or, where a request has only lengths, from the
request itself: then only a preempted sequence finds its own pages again. Generated tokens belong to the
request that generated them, unless a session says what they are (`Request.spoken`).

Modelled on vLLM 0.32; knows nothing of slots, budgets or policies.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

from sim.memory import PagePool
from sim.request import Request, Sequence

Share = Literal["none", "tenant", "all"]
Key = Hashable


class Page:
    """A full page with a key, and how many sequences hold it."""

    __slots__ = ("holders", "key")

    def __init__(self, key: Key, holders: int) -> None:
        self.key = key
        self.holders = holders


@dataclass
class CacheUse:
    """How a cache was used.

    warm_pages  pages that could be found when the run began
    queried     tokens that first admissions looked up
    requeried   tokens that admissions after a preemption did
    evictions   pages that can no longer be found, because they were taken
    """

    warm_pages: int = 0
    queried: int = 0
    requeried: int = 0
    evictions: int = 0


class PrefixPool(PagePool):
    """A pool of pages that are found again by content.

    share     who may hit whose pages: "none" only a request its own, "tenant" requests of one tenant, "all"
    identity  what else makes pages compatible, the same for all requests: the model, how it counts positions

    Raises ValueError for counts below 1, an unknown `share`, or block ids that do not line up with pages.
    """

    remembers = True

    use: CacheUse

    def __init__(self, pages: int, page_size: int, share: Share = "tenant", identity: str = "") -> None:
        super().__init__(pages, page_size)
        if share not in ("none", "tenant", "all"):
            raise ValueError(f"share is {share!r}; expected none, tenant or all")
        self.share = share
        self.identity = identity
        self.known: dict[Key, dict[Page, None]] = {}  # findable pages by key, the first kept first
        # Of these, the ones nobody holds, least recently used first. The first of a plain dict is slow to find
        # once many before it have left.
        self.idle: OrderedDict[Page, None] = OrderedDict()
        self.use = CacheUse()

    @property
    def cached(self) -> int:  # type: ignore[override]  # a count here, a constant where nothing is remembered
        """Free pages whose content could still be found."""
        return len(self.idle)

    def find(self, seq: Sequence) -> list[Page]:
        """The pages that hold the longest known prefix, leaving at least one token to compute."""
        found = []
        for key in self.keys(seq, (seq.known - 1) // self.page_size):
            pages = self.known.get(key)
            if not pages:
                break
            found.append(next(iter(pages)))
        return found

    def claim(self, seq: Sequence, found: list[Page]) -> None:
        """The sequence holds these pages from now on."""
        for page in found:
            if page.holders:
                self.shared += self.page_size
            else:
                del self.idle[page]
                self.free -= 1
            page.holders += 1
        seq.table = found

    def keep(self, seq: Sequence, full: int) -> None:
        """The first `full` pages of the sequence are full now, and findable."""
        if full <= len(seq.table):
            return
        self.changes += 1
        for key in self.keys(seq, full, first=len(seq.table)):
            page = Page(key, holders=1)
            self.known.setdefault(key, {})[page] = None
            seq.table.append(page)

    def take(self, pages: int) -> None:
        """Take pages: those never kept first, then the least recently used, which are forgotten."""
        super().take(pages)
        while len(self.idle) > self.free:
            self.forget(next(iter(self.idle)))

    def takes_until_lost(self, found: list[Page]) -> int:
        """How many pages can be taken before one of these is forgotten."""
        at_stake = {page for page in found if not page.holders}
        if not at_stake:
            return self.free
        return self.free - len(self.idle) + next(place for place, page in enumerate(self.idle) if page in at_stake)

    def forget(self, page: Page) -> None:
        """A page nobody holds can no longer be found."""
        self.changes += 1
        del self.idle[page]
        alike = self.known[page.key]
        del alike[page]
        if not alike:
            del self.known[page.key]
        self.use.evictions += 1

    def give_back(self, seq: Sequence, pages: int) -> None:
        """All pages of a sequence, the tail first; those nobody else holds are free, and findable if kept."""
        super().give_back(seq, pages - len(seq.table))
        for page in reversed(seq.table):
            page.holders -= 1
            if page.holders:
                self.shared -= self.page_size
            else:
                self.idle[page] = None
                self.free += 1
        seq.table = []

    def lose_all(self) -> None:
        """The memory is gone: nothing is found again, and nobody holds a page."""
        super().lose_all()
        self.changes += 1
        self.known = {}
        self.idle = OrderedDict()

    def keys(self, seq: Sequence, end: int, first: int = 0) -> list[Key]:
        """Keys of the pages first..end of a sequence; each stands for the whole prefix up to its end."""
        request = seq.request
        prompt_pages = 0
        if request.tokens is not None or request.blocks:
            prompt_pages = min(end, (request.prompt + request.spoken) // self.page_size)
        while len(seq.keys) < prompt_pages:
            seq.keys.append(self.next_key(seq))
        own = ((seq.index, page) for page in range(max(first, prompt_pages), end))
        return [*seq.keys[first:prompt_pages], *own]

    def next_key(self, seq: Sequence) -> bytes:
        """The key of the page after those that have one."""
        parent = seq.keys[-1] if seq.keys else self.root(seq.request)
        return digest(parent, content(seq, len(seq.keys), self.page_size))

    def root(self, request: Request) -> bytes:
        """Where the chain of a request starts: the domain and the adapter."""
        domain = {"none": request.id, "tenant": request.tenant, "all": ""}[self.share]
        return digest(b"", repr((self.share, domain, request.adapter, self.identity)).encode())

    def contents(self) -> list[bytes]:
        """What another run can start from: keys made of content, the least recently used first."""
        return [page.key for page in self.idle if isinstance(page.key, bytes)]

    def warm(self, contents: Iterable[bytes]) -> None:
        """Start from what another pool left, as far as there are pages: the most recently used of it.

        Raises ValueError for a pool that has been used.
        """
        if self.known or self.free < self.pages:
            raise ValueError("only an empty pool can be warmed")
        for key in list(contents)[-self.pages :]:
            page = Page(key, holders=0)
            self.known.setdefault(key, {})[page] = None
            self.idle[page] = None
        self.use.warm_pages = len(self.idle)

    def check(self) -> None:
        """Nothing is held, and every idle page can be found."""
        super().check()
        findable = {page for alike in self.known.values() for page in alike}
        assert findable == set(self.idle), "a page is findable that nobody has, or idle and not findable"


def digest(parent: bytes, own: bytes) -> bytes:
    """A key from the one before and a page's own content; the same in every process."""
    return blake2b(parent + own, digest_size=16).digest()


def content(seq: Sequence, page: int, page_size: int) -> bytes:
    """What is in a full page of known content, as bytes: its tokens, or its blocks and the place in them."""
    request = seq.request
    start, end = page * page_size, (page + 1) * page_size
    if request.tokens is not None:
        return repr(request.tokens[start:end]).encode()
    size = request.block_size
    if size % page_size and page_size % size:
        raise ValueError(
            f"request {request.id}: blocks of {size} tokens do not line up with pages of {page_size}; "
            "expected one to divide the other"
        )
    return f"{request.blocks[start // size : -(-end // size)]} {start % size} of {size}".encode()
