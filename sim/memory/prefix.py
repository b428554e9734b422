"""A page pool with a prefix cache: full pages are found again by their content.

The key of a page stands for all that makes its content the same: the tokens of the whole prefix up to its end, the
adapter, and the domain in which pages may be shared. Keys are chained: each is a hash of the one before it and the
page's own tokens, so that a change to an early token changes all that follow. Only full pages are cached. A page
that no sequence holds stays in the cache until it is taken: pages that were never cached are taken first, then the
least recently used.

Content comes from token ids or from the block ids of a trace. Where a request has only lengths, its pages match only
themselves: a preempted sequence finds its own pages again. Generated tokens belong to the request that generated
them, unless a session says what they are (`Request.spoken`). Modelled on vLLM 0.32.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from hashlib import blake2b
from itertools import takewhile

from sim.memory.content import Share, domain
from sim.memory.pool import Found, PagePool
from sim.request import Request
from sim.sequence import Page, Sequence
from sim.subclassing import mypyc_attr

Key = Hashable


@mypyc_attr(allow_interpreted_subclasses=True)
class PrefixPool(PagePool):
    """A pool of pages that are found again by content.

    share     which requests may hit a page: "none" only the one that filled it, "tenant" those of its tenant, "all"
    identity  what else makes pages compatible, the same for all requests: the model, how it counts positions

    Raises ValueError for counts below 1, an unknown `share`, or block ids that do not line up with pages.
    """

    def __init__(self, pages: int, page_size: int, share: Share = "tenant", identity: str = "") -> None:
        super().__init__(pages, page_size)
        if share not in ("none", "tenant", "all"):
            raise ValueError(f"share is {share!r}; expected none, tenant or all")
        self.remembers = True
        self.share = share
        self.identity = identity
        self.known: dict[Key, dict[Page, None]] = {}  # cached pages by key, the first entered first
        # Of these, the ones that no sequence holds, least recently used first. The first entry of a plain dict is
        # slow to find once many before it have been removed.
        self.idle: OrderedDict[Page, None] = OrderedDict()

    @property
    def cached(self) -> int:
        """Free pages whose content is still in the cache."""
        return len(self.idle)

    def find(self, seq: Sequence) -> Found:
        """The cached pages of the longest prefix of a sequence, leaving at least one token to compute."""
        return self.prefix(seq, seq.known - 1)

    def prefix(self, seq: Sequence, most: int) -> Found:
        """The cached pages of the longest prefix of the first `most` tokens of a sequence."""
        found = []
        for key in self.keys(seq, most // self.page_size):
            pages = self.known.get(key)
            if not pages:
                break
            found.append(next(iter(pages)))
        return found

    def domain(self, seq: Sequence) -> Hashable:
        """Which sequences may share pages with this one: those of equal domain."""
        return domain(seq.request, self.share)

    def look_up(self, seq: Sequence, most: int) -> tuple[None, int]:
        """(no place, tokens found) of the first `most` tokens of a sequence."""
        return None, len(self.prefix(seq, most)) * self.page_size

    def claim(self, seq: Sequence, found: Found) -> None:
        """Have a sequence hold the pages that `find` returned."""
        assert isinstance(found, list)
        for page in found:
            if page.holders:
                self.shared += self.page_size
            else:
                del self.idle[page]
                self.free -= 1
            page.holders += 1
        seq.pages.hold(found)

    def keep(self, seq: Sequence, full: int) -> None:
        """Enter the first `full` pages of a sequence, which are full, into the cache."""
        if full <= len(seq.pages.table):
            return
        self.changes += 1
        for key in self.keys(seq, full, first=len(seq.pages.table)):
            page = Page(key, holders=1)
            self.known.setdefault(key, {})[page] = None
            seq.pages.table.append(page)

    def withdraw(self, seq: Sequence, pages: int) -> None:
        """Take the last `pages` cached pages of a sequence out of the cache; it alone holds them, and still does."""
        for page in last(seq, pages):
            assert page.holders == 1, "withdrew a page that another sequence found"
            self.changes += 1
            self.uncache(page)
        del seq.pages.table[len(seq.pages.table) - pages :]

    def take(self, pages: int) -> None:
        """Take pages: those never cached first, then the least recently used, which are evicted."""
        super().take(pages)
        excess = self.cached - self.free
        if excess > 0:
            self.evict(excess)

    def kept(self, seq: Sequence) -> int:
        """How many of the pages that a sequence holds are in the cache."""
        return len(seq.pages.table)

    def others_hold(self, seq: Sequence, pages: int) -> bool:
        """Whether another sequence holds one of the last `pages` cached pages of this one."""
        return any(page.holders > 1 for page in last(seq, pages))

    def ahead_of(self, found: Found, seq: Sequence, pages: int) -> Found:
        """The pages of `found` before the first of the last `pages` cached pages of a sequence."""
        behind = last(seq, pages)
        return list(takewhile(lambda page: page not in behind, found))

    def in_use(self, found: list[Page], without: Sequence | None = None) -> int:
        """How many of the pages found sequences hold, one of them left out."""
        alone = () if without is None else {page for page in without.pages.table if page.holders == 1}
        return sum(page.holders > 0 and page not in alone for page in found)

    def released(self, seq: Sequence, pages: int) -> int:
        """How many pages are free once a sequence has left that holds `pages`."""
        return pages - sum(page.holders > 1 for page in seq.pages.table)

    def takes_until_lost(self, found: list[Page]) -> int:
        """How many pages can be taken before one of `found` is evicted."""
        at_stake = {page for page in found if not page.holders}
        if not at_stake:
            return self.free
        return self.free - len(self.idle) + next(place for place, page in enumerate(self.idle) if page in at_stake)

    # ------------------------------------------------------------------ in tokens, for passes of one kind

    @property
    def protected(self) -> int:
        """Cached tokens that sequences hold."""
        return (sum(map(len, self.known.values())) - len(self.idle)) * self.page_size

    def match(self, seq: Sequence, most: int) -> int:
        """Look up the first `most` tokens of a sequence to be pinned; returns the tokens found, whole pages."""
        seq.pages.in_tree = len(self.prefix(seq, most)) * self.page_size
        return seq.pages.in_tree

    def pin(self, seq: Sequence) -> None:
        """Hold what `match` found."""
        self.claim(seq, self.prefix(seq, seq.pages.in_tree))

    def unpin(self, seq: Sequence) -> None:
        """Hold what `match` found no longer."""
        self.give_back(seq, self.kept(seq))

    def make_room(self, tokens: int) -> int:
        """Evict the least recently used until `tokens` are available, or none is left; returns the tokens evicted."""
        evicted = max(0, min(self.pages_for(tokens - self.avail), self.cached))
        self.evict(evicted)
        return evicted * self.page_size

    def publish(self, seq: Sequence, tokens: int) -> None:
        """Enter the whole pages of the first `tokens` tokens, all computed, into the cache."""
        self.keep(seq, tokens // self.page_size)

    # ------------------------------------------------------------------ what leaves the cache

    def evict(self, pages: int) -> None:
        """Evict the `pages` least recently used; so many are idle."""
        for _ in range(pages):
            self.forget(next(iter(self.idle)))

    def forget(self, page: Page) -> None:
        """Evict a page that no sequence holds."""
        self.changes += 1
        del self.idle[page]
        self.uncache(page)
        self.use.evictions += 1

    def uncache(self, page: Page) -> None:
        """Have `find` no longer return a page."""
        alike = self.known[page.key]
        del alike[page]
        if not alike:
            del self.known[page.key]

    def give_back(self, seq: Sequence, pages: int) -> None:
        """Free all pages of a sequence, the last first; those that no other sequence holds stay in the cache."""
        super().give_back(seq, pages - len(seq.pages.table))
        for page in reversed(seq.pages.table):
            page.holders -= 1
            if page.holders:
                self.shared -= self.page_size
            else:
                self.idle[page] = None
                self.free += 1
        seq.pages.hold([])

    def lose_all(self) -> None:
        """Free all pages and empty the cache: the content of the memory is lost."""
        super().lose_all()
        self.changes += 1
        self.known = {}
        self.idle = OrderedDict()

    def keys(self, seq: Sequence, end: int, first: int = 0) -> list[Key]:
        """Keys of pages `first` to `end` (excluded) of a sequence; each stands for the whole prefix up to its end."""
        request, chain = seq.request, seq.pages.keys
        prompt_pages = min(end, self.pages_of_content(request))
        while len(chain) < prompt_pages:
            chain.append(self.next_key(seq))
        own = ((seq.index, page) for page in range(max(first, prompt_pages), end))
        return [*chain[first:prompt_pages], *own]

    def pages_of_content(self, request: Request) -> int:
        """How many pages of a request are full of tokens that are known."""
        if request.tokens is None and not request.blocks:
            return 0
        return (request.prompt + request.spoken) // self.page_size

    def next_key(self, seq: Sequence) -> bytes:
        """The key of the first page without one."""
        chain = seq.pages.keys
        parent = chain[-1] if chain else self.root(seq.request)
        return digest(parent, content(seq, len(chain), self.page_size))

    def root(self, request: Request) -> bytes:
        """The first key of the chain of a request: a hash of the domain and the adapter."""
        return digest(b"", repr((self.share, *domain(request, self.share), self.identity)).encode())

    def contents(self) -> list[bytes]:
        """Keys from content of all cached pages, the least recently used first, for `warm`."""
        return [page.key for page in self.idle if isinstance(page.key, bytes)]

    def warm(self, contents: Iterable[bytes]) -> None:
        """Fill the cache with the `contents` of another pool, as far as there are pages: the most recently used.

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
        """Check what holds once every sequence has left: all pages are free, and every idle page is in the cache."""
        super().check()
        findable = {page for alike in self.known.values() for page in alike}
        assert findable == set(self.idle), "the cached pages are not the idle ones"


def last(seq: Sequence, pages: int) -> list[Page]:
    """The last `pages` cached pages that a sequence holds."""
    return seq.pages.table[len(seq.pages.table) - pages :]


def digest(parent: bytes, own: bytes) -> bytes:
    """The key that follows `parent` for a page with content `own`; the same in every process."""
    return blake2b(parent + own, digest_size=16).digest()


def content(seq: Sequence, page: int, page_size: int) -> bytes:
    """The content of a full page as bytes: its tokens, or its blocks and the place in them.

    Raises ValueError for blocks that do not line up with pages.
    """
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
