"""How an engine speculates: how many tokens it drafts, and which of them are right (Speculation)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sim.request import Request


@dataclass(frozen=True)
class Speculation:
    """Raises ValueError below one draft.

    drafts    tokens drafted for each verification
    accepted  for a request, by the number of tokens generated so far: how many of the drafts that follow would be
              accepted. A pure function, so that a request that is computed again has the same text.
    """

    drafts: int
    accepted: Callable[[Request], Sequence[int]]

    def __post_init__(self) -> None:
        if self.drafts < 1:
            raise ValueError(f"drafts is {self.drafts}; expected at least 1")
