"""The share of running sequences' further tokens that an admission keeps free (SGLang: new token ratio).

It falls with every decode pass, rises when memory runs short, and starts again when the engine is idle.
"""

from __future__ import annotations

from collections.abc import Collection

from sim.engine.apart.config import RatioConfig


class NewTokenRatio:
    """Begins at the initial share and falls to the least.

    Every decode pass subtracts the same amount in turn: floats then agree with an engine that does so.
    """

    def __init__(self, config: RatioConfig) -> None:
        self.initial = self.current = config.initial
        self.minimum = config.minimum
        self.decay = (config.initial - config.minimum) / config.decay_passes

    def decode(self, passes: int) -> None:
        """So many decode passes are planned."""
        for _ in range(passes):
            if self.current == self.minimum:
                return
            self.current = max(self.current - self.decay, self.minimum)

    def retracted(self, outputs: Collection[int], limits: Collection[int], ahead: int) -> None:
        """Sequences gave up their memory; the others have so many outputs and may have so many in all."""
        self.current = min(1.0, (sum(outputs) + ahead * len(outputs)) / (sum(limits) + 1))

    def reset(self) -> None:
        """The engine is idle."""
        self.current = self.initial
