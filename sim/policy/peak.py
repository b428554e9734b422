"""Admission by peak: if everyone runs to its maximum, the memory is never outgrown.

Whoever has the least to come leaves first. So if those present are put in order of what they may still generate, the
most first, then when the k-th has its last token the first k hold what they hold now and as much again as it still
had to come: k times that, and the sum. The largest of these sums over k is the peak, and a newcomer enters if the
peak with it is within the memory. Never a preemption where requests stay within their maximum; far less is kept free
than by reserving all of them at once, as others will have left by then. Blind to requests that end before it.

Pages are counted for as long as they are held: one that has its last token keeps them until that step has ended,
which at depth 2 is a plan later, and under late eviction it computes a position more. One that the token budget
leaves behind the others may leave later than the order says, and so may those admitted after it: they are taken to
stay to the end.

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
        present = [*running, seq]
        known = np.array([each.request.prompt + each.generated(step) for each in present])
        lingers = np.array([each.lingers for each in present])
        over = np.array([each.over for each in present])
        most = np.where(over, known - lingers, [each.most for each in present])
        leaves = most - known + lingers
        behind = np.logical_or.accumulate([each.behind for each in present])
        leaves[behind] = leaves.max()
        last_first = np.argsort(-leaves, kind="stable")
        known, most, leaves = known[last_first], most[last_first], leaves[last_first]
        pages = -(-np.minimum(known[:, np.newaxis] + leaves, most[:, np.newaxis]) // pool.page_size)
        return bool((np.triu(pages).sum(axis=0) <= pool.pages).all())

    def next_change(self, step: int) -> int:
        """The later a newcomer comes, the less it holds when the others leave."""
        return 1
