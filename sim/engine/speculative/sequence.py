"""A request on an engine that speculates (SpeculativeSequence)."""

from __future__ import annotations

from collections.abc import Sequence as Several

from sim.request import Leg, Request
from sim.sequence import HeldPages, Sequence, Target

NOT_DECODING = -1


class SpeculativeSequence(Sequence):
    """It never counts as `decoding`: what it computes differs from step to step.

    accepted  by tokens generated: how many of the drafts that follow would be accepted
    proposed  drafts to be verified with its latest token; NOT_DECODING while it computes its prompt, or again
    covered   positions for which it holds pages: those of rejected drafts are kept for the next ones
    planned   (known, last_step) before its latest step
    """

    __slots__ = ("accepted", "covered", "planned", "proposed")

    def __init__(
        self, request: Request, index: int, leg: Leg, target: Target, pages: HeldPages, accepted: Several[int]
    ) -> None:
        super().__init__(request, index, leg, target, pages)
        self.accepted = accepted
        self.proposed = NOT_DECODING
        self.covered = 0
        self.planned = self.known, self.last_step

    @property
    def wanted(self) -> int:
        """Positions that it could compute in a step now: those of its drafts included."""
        return self.known - self.computed + max(0, self.proposed)

    def propose(self, drafts: int) -> None:
        """Draft so many tokens, as far as the longest sequence leaves room for them."""
        self.proposed = max(0, min(drafts, self.target.most - self.known))

    def enter(self, serial: int, step: int, computed: int) -> None:
        """It is admitted; `computed` positions need no computing."""
        super().enter(serial, step, computed)
        self.covered = computed

    def cover(self, positions: int) -> None:
        """It holds pages for so many positions."""
        self.covered = max(self.covered, positions)

    def compute(self, tokens: int) -> bool:
        """A step that has been planned computes `tokens` positions; whether all known ones are computed."""
        self.planned = self.known, self.last_step
        self.computed += tokens
        return self.computed >= self.known

    def verify(self, tokens: int, step: int) -> int:
        """Step number `step` - 1 has computed its latest token and its drafts, `tokens` positions.

        Returns the tokens that this brings: the drafts accepted and one more, or all that are left. The positions of
        the others are taken back.
        """
        generated = self.known - self.request.prompt
        right = self.accepted[generated] if generated < len(self.accepted) else 0
        given = min(1 + min(right, tokens - 1), self.target.goal + 1 - self.known)
        self.known += given
        self.computed = self.known - 1
        self.last_step = step - 1
        return given

    def lose(self, kept: bool = False) -> int:
        """Its computed positions leave the memory, and its drafts are dropped; returns how many positions."""
        self.proposed = NOT_DECODING
        self.covered = 0
        return super().lose(kept)

    def roll_back(self, step: int, start: int | None, before: int | None) -> None:
        """Take back what its latest step would have brought, if that has not ended: it began at `start`."""
        if start is None:
            return
        self.known, self.last_step = self.planned
        if self.computed:
            self.computed = start
