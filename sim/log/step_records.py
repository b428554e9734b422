"""The steps that ran, in order: runs of steps with the same batch, and what each verification of drafts brought."""

from __future__ import annotations

from array import array
from struct import Struct

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

RUN = (
    "planned",  # when this batch was planned first, ns
    "start",  # when it started, ns
    "steps",
    "decode",  # slots that yield one new token a step; with speculative decoding, one or more
    "prefill",  # slots that compute prompt tokens
    "recomputed",  # slots that compute anything a preemption had thrown away
    "held",  # slots whose sequence has all its tokens, and empty slots of a closed static batch
    "no_budget",  # slots whose sequence got nothing
    "waiting",  # sequences that the plan left waiting
    "reason",  # why, as far as slots stay empty
    "tokens",  # positions computed a step
    "redone",  # of these, positions that an earlier step had computed
    "padding",  # positions computed for nothing: prompts padded to the longest
    "context",  # cached positions the decoding sequences read, at the first step
    "live",  # positions with a token during the first step, those it computes included
    "filled",  # pages with a live position during the first step
    "pages",  # pages held during the first step
    "cached",  # free pages in the prefix cache during the first step
)
VERIFICATION = ("step", "request", "start", "tokens", "given")
"""A step computed the last token of a request and its drafts, `tokens` after `start`; it brought `given` tokens."""

PACK_RUN, PACK_VERIFICATION = (Struct(f"={len(columns)}q").pack for columns in (RUN, VERIFICATION))


class StepRecords:
    """Rows of RUN, the duration of each step, the pages that each begins to fill, and rows of VERIFICATION."""

    __slots__ = ("durations", "growth", "runs", "verified")

    def __init__(self) -> None:
        self.runs, self.verified = bytearray(), bytearray()
        self.durations, self.growth = array("q"), array("q")

    def verify(self, index: int, start: int, tokens: int, given: int) -> None:
        """In the next step, request `index` computes `tokens` positions after `start`, and gets `given` tokens."""
        self.verified += PACK_VERIFICATION(len(self.durations), index, start, tokens, given)

    def run_table(self) -> Integers:
        """All runs: int64 of shape (runs, len(RUN)), a view."""
        return np.frombuffer(self.runs, np.int64).reshape(-1, len(RUN))

    def verification_table(self) -> Integers:
        """All verifications: int64 of shape (verifications, len(VERIFICATION)), a view."""
        return np.frombuffer(self.verified, np.int64).reshape(-1, len(VERIFICATION))
