"""Requests that come to an engine that speculates (SpeculativeIntake)."""

from __future__ import annotations

from sim.engine.intake import Intake
from sim.engine.speculative.sequence import SpeculativeSequence
from sim.engine.speculative.speculation import Speculation
from sim.engine.state import EngineState
from sim.request import Leg, Request
from sim.sequence import HeldPages, Sequence, Target


class SpeculativeIntake(Intake):
    """The entrance of an engine that drafts `speculation.drafts` tokens beyond the last one of a sequence."""

    def __init__(self, state: EngineState, speculation: Speculation) -> None:
        super().__init__(state, closed=False)
        self.speculation = speculation

    def sequence(self, request: Request, index: int, leg: Leg) -> Sequence:
        """A request as this engine would serve it; it is not submitted.

        It may come to hold the positions of its last drafts, but none beyond the longest sequence.
        """
        longest = self.state.config.longest
        target = Target(request, leg, 0, longest)
        target.most = max(target.most, min(target.most + self.speculation.drafts, longest - 1))
        pages = self.no_pages or HeldPages(self.state.pool)
        return SpeculativeSequence(request, index, leg, target, pages, self.speculation.accepted(request))
