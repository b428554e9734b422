"""Admission by ratio: room for a newcomer's whole life, and for a share of what the running ones may still need.

    pages(prompt + maximum output) + pages(ratio x what the running ones may still generate) <= free pages

The ratio falls by a step of decoding while all goes well, is set back when the engine is idle, and rises when
somebody had to leave: to what those still running have generated so far, and would in `ahead` steps more, over what
they may generate in all.

Modelled on SGLang's published scheduler: its initial ratio of 0.7, a floor of 0.14 of that, 600 steps from one to the
other, 20 steps ahead, and its choice of whom to retract (`FewestOutputs`). Not verified against that engine, and left
out: its clipping of maximum outputs at 4,096 tokens, pages of its prefix cache that could be evicted, and retraction
of several at once to make room for the steps ahead.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sim.memory.pool import PagePool
from sim.policy.base import Admission
from sim.request import Sequence


@dataclass
class Ratio(Admission):
    """Admit when pages for the whole request and for a drifting share of what the running may need are free.

    Raises ValueError for settings that make no sense.
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
        """Everything the newcomer may ever hold."""
        return seq.most

    def spare(self, pool: PagePool, to_come: int, step: int) -> int:
        """Pages for the share of the positions that may still come."""
        return pool.pages_for(int(self.ratio(step) * to_come))

    def next_change(self, step: int) -> int:
        """The ratio falls with every step."""
        return 1

    def idle(self, step: int) -> None:
        """Nothing runs: start over."""
        self.level, self.since = self.initial, step

    def retracted(self, running: Iterable[tuple[int, int]], step: int) -> None:
        """Somebody had to leave; (generated, at most) tokens of those who stay."""
        generated = most = 0
        for tokens, limit in running:
            generated += tokens + self.ahead
            most += limit
        self.level, self.since = min(1.0, generated / most) if most else self.initial, step


@dataclass(frozen=True)
class FewestOutputs:
    """Whoever has generated least, of these the one with the longest prompt, of these the last admitted."""

    def choose(self, running: dict[int, Sequence], step: int) -> Sequence:
        """By tokens generated and prompt."""
        return min(reversed(running.values()), key=lambda seq: (seq.generated(step), -seq.request.prompt))
