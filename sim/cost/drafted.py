"""A step cost with what drafting the tokens for the next step costs (Drafted)."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from sim.cost.forms import Curve, StepCost
from sim.cost.scaled import Scaled
from sim.cost.shape import Shape
from sim.request import Nanoseconds


@dataclass(frozen=True)
class Drafted:
    """The cost of an engine that drafts `drafts` tokens behind every sequence that decodes.

    cost    of a step of the model, with the drafts that it verifies
    drafts  tokens drafted behind each sequence
    lookup  ns of a step in which any are drafted by looking them up
    share   of a step that computes one token of each decode: what drafting one token by heads takes
    model   cost of a draft model: it computes every chunk, too, and one pass over the decodes for each token
    """

    cost: StepCost
    drafts: int
    lookup: Nanoseconds = 0
    share: float = 0.0
    model: StepCost | None = None

    @property
    def needs_longest(self) -> bool:
        """Whether a cost depends on the longest decode."""
        costs = (self.cost, self.model)
        return any(isinstance(cost, Curve | Scaled) and cost.needs_longest for cost in costs)

    def step(self, shape: Shape) -> Nanoseconds:
        """The duration of one step and of drafting behind it, ns."""
        lasts = self.cost.step(shape)
        if self.model is not None and shape.chunks:
            lasts += self.model.step(chunks_of(shape))
        if not shape.decodes:
            return lasts
        lasts += self.lookup
        if self.share or self.model is not None:
            single = decodes_of(shape)
            if self.share:
                lasts += round(self.share * self.drafts * self.cost.step(single))
            if self.model is not None:
                lasts += self.drafts * self.model.step(single)
        return lasts

    def run(self, shape: Shape, steps: int, growth: Sequence[int]) -> array[Nanoseconds]:
        """The durations of steps without drafts to verify, each one token of every decode longer: `step` of each."""
        durations, now = array("q"), decodes_of(shape)
        for pages in (0, *growth[1:steps]):
            now.add_pages(pages)
            durations.append(self.step(now))
            now.context += now.decodes
            now.longest += 1
        return durations


def decodes_of(shape: Shape) -> Shape:
    """The decodes of a step, one token each."""
    made = Shape()
    made.decodes, made.context, made.longest, made.pages = shape.decodes, shape.context, shape.longest, shape.pages
    return made


def chunks_of(shape: Shape) -> Shape:
    """The chunks of a step."""
    made = Shape()
    for start, tokens in shape.pieces:
        made.add_chunk(start, tokens)
    return made
