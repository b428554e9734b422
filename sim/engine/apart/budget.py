"""What one prefill pass may still take: tokens to compute, and room in the memory (PrefillBudget)."""

from __future__ import annotations

from collections.abc import Callable

from sim.engine.apart.config import ApartConfig
from sim.memory.pool import PagePool


def rounded(pool: PagePool, positions: int) -> int:
    """Positions of one sequence rounded up to whole pages."""
    size = pool.page_size
    return -(-positions // size) * size


class PrefillBudget:
    """The budgets of one pass; `decodes` running sequences decode in it too.

    tokens    tokens to compute before no further prompt is taken
    chunk     tokens to compute in all (None: prompts are not cut)
    reserved  room kept for what running and picked sequences may still produce, and what the pass computes
    most      no less than that, in whole tokens; the sum over the running sequences is taken only if this is too much
    needed    room for what the pass computes alone
    """

    def __init__(
        self, config: ApartConfig, pool: PagePool, decodes: int, expected: Callable[[], float], most: int
    ) -> None:
        """`expected` returns the tokens that the running sequences are expected to produce, at most `most`."""
        self.pool = pool
        self.tokens = config.max_prefill_tokens - decodes
        self.chunk = None if config.chunked_prefill_size is None else config.chunked_prefill_size - decodes
        self.needed = decodes
        self.most = decodes + most
        self.expected = expected
        self.kept: list[float] = [decodes]
        self.summed = False

    @property
    def reserved(self) -> float:
        """The exact sum, in the order in which it has grown: float sums depend on it."""
        if not self.summed:
            self.summed = True
            self.kept[0] += self.expected()
        total = self.kept[0]
        for tokens in self.kept[1:]:
            total += tokens
        self.kept = [total]
        return total

    @property
    def unreserved(self) -> float:
        """Room that nothing is kept in."""
        return self.pool.free * self.pool.page_size - self.reserved

    def leaves_more_than(self, tokens: int) -> bool:
        """Whether more room than `tokens` is unreserved."""
        return self.pool.free * self.pool.page_size - self.most > tokens or self.unreserved > tokens

    @property
    def unused(self) -> int:
        """Room that the pass does not fill."""
        return self.pool.free * self.pool.page_size - self.needed

    @property
    def has_room(self) -> bool:
        """Whether another sequence may fit."""
        return self.unused > 0 and self.leaves_more_than(0)

    @property
    def spent(self) -> bool:
        """Whether the tokens of the pass are used up."""
        return self.tokens <= 0 or (self.chunk is not None and self.chunk <= 0)

    def charge(self, tokens: int, outputs: int) -> None:
        """A picked sequence computes `tokens` and may produce `outputs` more."""
        size = self.pool.page_size
        paged = rounded(self.pool, tokens)
        self.keep(paged + size + outputs)
        self.needed += paged + size
        self.tokens -= paged
        if self.chunk is not None:
            self.chunk -= paged

    def keep(self, tokens: int) -> None:
        """Reserve so many tokens more."""
        self.kept.append(tokens)
        self.most += tokens

    def expect_less(self, tokens: float) -> None:
        """A running sequence that was expected to produce so many tokens is displaced."""
        self.kept.append(-tokens)
