"""Admission by ratio: pages for all that a new sequence may need, and for a share of what the running ones may need.

    pages(prompt + maximum output) + pages(ratio x what the running ones may still generate) <= free pages

The ratio falls with every step, returns to its initial value when the engine is idle, and rises when a sequence is
preempted: to the tokens that the remaining sequences have generated, and would in `ahead` steps more, over the most
that they may generate.

Modelled on SGLang's published scheduler: its initial ratio of 0.7, a floor of 0.14 of that, 600 steps from one to the
other, 20 steps ahead, and its choice of the sequence to retract (`FewestOutputs`). Not verified against that engine,
and left out: its clipping of maximum outputs at 4,096 tokens, pages of its prefix cache that could be evicted, and
retraction of several sequences at once to make room for the steps ahead.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sim.memory.pool import PagePool
from sim.policy.base import Admission
from sim.sequence import Sequence


@dataclass
class Ratio(Admission):
    """Admit when pages for the whole request and for a drifting share of what the running may need are free.

    initial      ratio at the start and after an idle engine; 0 <= minimum <= initial <= 1
    minimum      lowest ratio
    decay_steps  steps from `initial` to `minimum`, at least 1
    ahead        steps of decoding that are assumed after a preemption, at least 0

    Raises ValueError for values outside these ranges.
    """

    initial: float = 0.7
    minimum: float = 0.098
    decay_steps: int = 600
    ahead: int = 20
    level: float = field(init=False)
    since: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if not 0 <= self.minimum <= self.initial <= 1:
            raise ValueError(
                f"ratio is initially {self.initial} and at least {self.minimum}; "
                "expected 0 <= minimum <= initial <= 1"
            )
        if self.decay_steps < 1 or self.ahead < 0:
            raise ValueError("decay_steps must be at least 1 and ahead at least 0")
        self.level = self.initial

    def ratio(self, step: int) -> float:
        """The ratio once so many steps have been planned."""
        decay = (self.initial - self.minimum) / self.decay_steps
        return max(self.minimum, self.level - decay * (step - self.since))

    def positions(self, seq: Sequence, computed: int) -> int:
        """All positions that the new sequence may ever hold."""
        return seq.target.most

    def spare(self, pool: PagePool, to_come: int, step: int) -> int:
        """Pages for the share of the positions that the running sequences may still need."""
        return pool.pages_for(int(self.ratio(step) * to_come))

    def next_change(self, step: int) -> int:
        """1: the ratio falls with every step."""
        return 1

    def idle(self, step: int) -> None:
        """Return to the initial ratio."""
        self.level, self.since = self.initial, step

    def retracted(self, running: Iterable[tuple[int, int]], step: int) -> None:
        """Set the ratio by (tokens generated, most tokens to generate) of the sequences that still run."""
        generated = most = 0
        for tokens, limit in running:
            generated += tokens + self.ahead
            most += limit
        self.level, self.since = min(1.0, generated / most) if most else self.initial, step


@dataclass(frozen=True)
class FewestOutputs:
    """The sequence with the fewest tokens generated, of these the longest prompt, of these the last admitted."""

    def choose(self, running: dict[int, Sequence], step: int) -> Sequence:
        """The minimum of (tokens generated, negated prompt), in reverse order of admission."""
        return min(reversed(running.values()), key=lambda seq: (seq.generated(step), -seq.request.prompt))
