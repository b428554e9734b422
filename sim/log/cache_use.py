"""How a prefix cache was used in a run: counters that the page pool keeps and the accounts read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class CacheUse:
    """How a prefix cache was used.

    warm_pages  pages in the cache when the run began
    queried     tokens that first admissions looked up
    requeried   tokens that admissions after a preemption looked up
    evictions   pages that were evicted, because they were taken
    """

    warm_pages: int = 0
    queried: int = 0
    requeried: int = 0
    evictions: int = 0

    def look_up(self, tokens: int, again: bool) -> None:
        """An admission, the first of a sequence or one after a preemption (`again`), looked up so many tokens."""
        if again:
            self.requeried += tokens
        else:
            self.queried += tokens
