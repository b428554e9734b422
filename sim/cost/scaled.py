"""A step cost times a factor: one for steps of decodes alone, one for steps with prompts."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

from sim.cost.forms import TOO_LONG, Curve, StepCost
from sim.cost.shape import Shape
from sim.request import Nanoseconds


@dataclass(frozen=True)
class Scaled:
    """Another cost, in whole nanoseconds, times `decode` for steps without a prompt or `prompts` for steps with one.

    Raises ValueError for a factor that is not a finite number above 0.
    """

    cost: StepCost
    decode: float = 1.0
    prompts: float = 1.0

    def __post_init__(self) -> None:
        for name in ("decode", "prompts"):
            factor = getattr(self, name)
            if not isfinite(factor) or factor <= 0:
                raise ValueError(f"{name} is {factor}; expected a factor above 0")

    @property
    def needs_longest(self) -> bool:
        """Whether the cost depends on the longest decode."""
        return isinstance(self.cost, Curve) and self.cost.needs_longest

    def factor(self, shape: Shape) -> float:
        """The factor of a step of this shape."""
        return self.prompts if shape.chunks else self.decode

    def step(self, shape: Shape) -> Nanoseconds:
        """The duration of one step, rounded half to even, at least 1 ns."""
        return max(1, round(self.factor(shape) * self.cost.step(shape)))

    def run(self, shape: Shape, steps: int, growth: Sequence[int]) -> array[Nanoseconds]:
        """The durations of a run of decode steps: `step` of each."""
        factor, durations = self.factor(shape), self.cost.run(shape, steps, growth)
        if durations and factor * max(durations) >= TOO_LONG:
            raise OverflowError("a step lasts longer than 292 years")
        return array("q", [max(1, round(factor * each)) for each in durations])
