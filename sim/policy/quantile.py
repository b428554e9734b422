"""Admission by quantile: with the new sequence, the memory is enough but for a small probability.

In the k-th step from now a sequence that has generated g tokens still runs if its output has at least g + k tokens.
The probability is estimated from the outputs seen that had more than g, and one more for the request's own maximum:

    p = (1 + outputs above g + k - 1) / (1 + outputs above g)          0 past its maximum

Then it holds n pages, otherwise none; at depth 2, one step longer than it runs. As outputs are independent, the
pages of all have the mean sum(n p) and the variance sum(n^2 p (1 - p)); the sequence is admitted if for each k their
quantile 1 - epsilon is within the memory.

Three approximations. The quantile is that of a normal law with this mean and variance: good for tens of sequences,
poor for a few. The steps k are 1 to 8, then 10, 12, 14, 16, 20, ..., each at most a quarter farther than the one
before. And epsilon is the probability at the worst of these steps, not that of any overflow while sequences come and
go. Shared pages count for each sequence, and the token budget is assumed to be enough for all. After a refusal the
rule is evaluated again when a sequence has left, or after `every` steps.

The past-future scheduler (Gong et al., ASPLOS 2025) predicts memory from past lengths too; it draws lengths and takes
the peak, where the sums here are exact.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import NormalDist

import numpy as np

from sim.memory.pool import PagePool
from sim.policy.base import Admission
from sim.policy.output_lengths import OutputLengths
from sim.sequence import Sequence

AHEAD = np.array(sorted({size << power for power in range(40) for size in (4, 5, 6, 7)} | {1, 2, 3}))
"""The steps from now that are checked, as far as any sequence may run."""


class Quantile(Admission):
    """Admit while the running sequences outgrow the memory with small probability, by past output lengths.

    epsilon  accepted probability of too little memory at any one step, above 0 and below 1
    window   how many of the last outputs are used
    every    steps after a refusal before the rule is evaluated again, if no sequence leaves; at least 1
    given    output lengths to use instead of those seen, in tokens

    Raises ValueError for values outside these ranges.
    """

    def __init__(
        self, epsilon: float = 0.05, window: int = 1000, every: int = 8, given: Iterable[int] | None = None
    ) -> None:
        if not 0 < epsilon < 1:
            raise ValueError(f"epsilon is {epsilon}; expected above 0 and below 1")
        if every < 1:
            raise ValueError(f"every is {every}; expected at least 1")
        law = None if given is None else tuple(given)
        self.learns = law is None
        self.outputs = OutputLengths(window if law is None else len(law), law or ())
        self.deviations = NormalDist().inv_cdf(1 - epsilon)
        self.every = every
        self.closed_until = 0

    def positions(self, seq: Sequence, computed: int) -> int:
        """The tokens known now; those to come are checked by `allows`."""
        return seq.known

    def allows(self, seq: Sequence, running: Iterable[Sequence], pool: PagePool, step: int) -> bool:
        """Whether the quantile of the pages of all sequences is within the memory at every step to come."""
        if step < self.closed_until:
            return False
        present = [*running, seq]
        generated = np.array([each.generated(step) for each in present])[:, np.newaxis]
        prompt = np.array([each.request.prompt for each in present])[:, np.newaxis]
        lingers = np.array([each.target.lingers for each in present])[:, np.newaxis]
        over = np.array([each.over for each in present])[:, np.newaxis]
        known = prompt + generated
        most = np.where(over, known - lingers, np.array([each.target.most for each in present])[:, np.newaxis])
        ahead = AHEAD[: 1 + np.searchsorted(AHEAD, (most - known + lingers).max() + 1)]
        runs = np.maximum(ahead - lingers, 1)
        longer = self.outputs.longer
        last = len(longer) - 1
        still_there = (1 + longer[np.minimum(generated + runs - 1, last)]) / (1 + longer[np.minimum(generated, last)])
        still_there = np.where(known + ahead - lingers - 1 <= most, still_there, 0.0)
        still_there = np.where(over, ahead == 1, still_there)
        pages = -(-np.minimum(known + ahead - 1, most) // pool.page_size)
        # Summed row by row, so that the last digit is the same on any machine.
        mean = (pages * still_there).sum(axis=0)
        variance = (pages * pages * still_there * (1 - still_there)).sum(axis=0)
        fits = bool((mean + self.deviations * np.sqrt(variance) <= pool.pages).all())
        if not fits:
            self.closed_until = step + self.every
        return fits

    def next_change(self, step: int) -> int | None:
        """The steps until the rule is evaluated again."""
        return self.closed_until - step if step < self.closed_until else None

    def retracted(self, running: Iterable[tuple[int, int]], step: int) -> None:
        """Evaluate the rule again: pages are free."""
        self.closed_until = 0

    def left(self, seq: Sequence) -> None:
        """Evaluate the rule again: pages are free. The length of an output that was not cut short is added."""
        self.closed_until = 0
        if self.learns and seq.over and not seq.target.cut_short:
            self.outputs.add(seq.known - seq.request.prompt)
