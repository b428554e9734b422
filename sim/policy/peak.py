"""Admission by peak: the memory is enough even if every sequence runs to its maximum.

The sequence with the least left to generate leaves first. Put the sequences in order of what they may still generate,
the most first. When the k-th gets its last token, the first k hold what they hold now and each as many tokens more as
the k-th still had to generate. The largest of these sums over k is the peak; a sequence is admitted if the peak with
it is within the memory. No sequence is preempted as long as outputs stay within their maximum, and less memory is
kept free than by reserving every maximum, because other sequences will have left. Earlier ends are not foreseen.

Pages are counted as long as they are held: a sequence with its last token keeps them until that step has ended, at
depth 2 one plan later, and with late eviction it computes one position more. A sequence that the token budget leaves
behind may leave later than in this order, and so may those admitted after it: they are assumed to stay to the end.

The rule of LightLLM's router, used in the experiments of S-LoRA and of the virtual token counter. Here it counts
pages, each sequence rounded up to whole pages, as they are taken.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from sim.memory.pool import PagePool
from sim.policy.base import Admission
from sim.sequence import Sequence


class Peak(Admission):
    """Admit while the memory suffices if every sequence generates up to its maximum: never a preemption.

    strict  as the router itself counts: the first token of a newcomer is held from its prefill on, and one position
            of the memory has to be left
    """

    def __init__(self, strict: bool = False) -> None:
        self.strict = strict

    def positions(self, seq: Sequence, computed: int) -> int:
        """The tokens known now; those to come are checked by `allows`."""
        return seq.known

    def allows(self, seq: Sequence, running: Iterable[Sequence], pool: PagePool, step: int) -> bool:
        """Whether the peak of all sequences is within the memory."""
        present = [*running, seq]
        known = np.array([each.request.prompt + each.generated(step) for each in present])
        lingers = np.array([each.target.lingers for each in present])
        over = np.array([each.over for each in present])
        most = np.where(over, known - lingers, [each.target.most for each in present])
        leaves = most - known + lingers
        behind = np.logical_or.accumulate([each.behind for each in present])
        leaves[behind] = leaves.max()
        if self.strict:
            known += [not each.generated(step) for each in present]
        last_first = np.argsort(-leaves, kind="stable")
        known, most, leaves = known[last_first], most[last_first], leaves[last_first]
        pages = -(-np.minimum(known[:, np.newaxis] + leaves, most[:, np.newaxis]) // pool.page_size)
        return bool((np.triu(pages).sum(axis=0) <= pool.pages - self.strict).all())

    def next_change(self, step: int) -> int:
        """1: a sequence admitted later holds less when the others leave."""
        return 1
