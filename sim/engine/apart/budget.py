"""What one prefill pass may still take: tokens to compute, and room in the memory (PrefillBudget)."""

from __future__ import annotations

from sim.engine.apart.config import ApartConfig
from sim.memory.pool import PagePool


def rounded(pool: PagePool, positions: int) -> int:
    """Positions of one sequence rounded up to whole pages."""
    return pool.pages_for(positions) * pool.page_size


class PrefillBudget:
    """The budgets of one pass; `decodes` running sequences decode in it too.

    tokens    tokens to compute before no further prompt is taken
    chunk     tokens to compute in all (None: prompts are not cut)
    reserved  room kept for what running and picked sequences may still produce, and what the pass computes
    needed    room for what the pass computes alone
    """

    def __init__(self, config: ApartConfig, pool: PagePool, decodes: int, expected: float) -> None:
        self.pool = pool
        self.tokens = config.max_prefill_tokens - decodes
        self.chunk = None if config.chunked_prefill_size is None else config.chunked_prefill_size - decodes
        self.reserved = decodes + expected
        self.needed = decodes

    @property
    def unreserved(self) -> float:
        """Room that nothing is kept in."""
        return self.pool.free * self.pool.page_size - self.reserved

    @property
    def unused(self) -> int:
        """Room that the pass does not fill."""
        return self.pool.free * self.pool.page_size - self.needed

    @property
    def has_room(self) -> bool:
        """Whether another sequence may fit."""
        return self.unreserved > 0 and self.unused > 0

    @property
    def spent(self) -> bool:
        """Whether the tokens of the pass are used up."""
        return self.tokens <= 0 or (self.chunk is not None and self.chunk <= 0)

    def charge(self, tokens: int, outputs: int) -> None:
        """A picked sequence computes `tokens` and may produce `outputs` more."""
        size = self.pool.page_size
        paged = rounded(self.pool, tokens)
        self.reserved += paged + size + outputs
        self.needed += paged + size
        self.tokens -= paged
        if self.chunk is not None:
            self.chunk -= paged
