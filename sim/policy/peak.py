"""Admission by peak: if everyone runs to its maximum, the memory is never outgrown.

Whoever has the least to come leaves first. So if those present are put in order of what they may still generate, the
most first, then when the k-th has its last token the first k hold what they hold now and as much again as it still
had to come: k times that, and the sum. The largest of these sums over k is the peak, and a newcomer enters if the
peak with it is within the memory. Never a preemption where requests stay within their maximum; far less is kept free
than by reserving all of them at once, as others will have left by then. Blind to requests that end before it.

The rule of LightLLM's router, on which S-LoRA and the virtual token counter's experiments run; here in pages, so that
what is counted is what is taken: each sequence is rounded up to whole pages.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from sim.memory.pool import PagePool
from sim.policy.base import Admission
from sim.request import Sequence


class Peak(Admission):
    """Admit while the memory suffices if every sequence generates up to its maximum: never a preemption."""

    def positions(self, seq: Sequence, computed: int) -> int:
        """Prompt and regenerated tokens now; `allows` looks at those to come."""
        return seq.known

    def allows(self, seq: Sequence, running: Iterable[Sequence], pool: PagePool, step: int) -> bool:
        """Whether the peak of all of them is within the memory."""
        present = [other for other in running if not other.over] + [seq]
        known = np.array([each.request.prompt + each.generated(step) for each in present])
        to_come = np.array([each.most for each in present]) - known
        most_first = np.argsort(-to_come, kind="stable")
        known, to_come = known[most_first], to_come[most_first]
        pages = -(-(known[:, np.newaxis] + to_come) // pool.page_size)
        return bool((np.triu(pages).sum(axis=0) <= pool.pages).all())

    def next_change(self, step: int) -> int:
        """The later a newcomer comes, the less it holds when the others leave."""
        return 1
