"""What one step computes (Batch): the scheduler's decision, and all that the log and the cost need of it."""

from __future__ import annotations

from array import array

from sim.cost import Shape
from sim.events import Reason
from sim.request import Nanoseconds, Sequence

NO_GROWTH = array("q", [0])


class Batch(Shape):
    """One step's work, and for how many steps the same batch may go on.

    start      when it was planned, ns
    budget     tokens that may still be added
    work       (sequence, tokens) for all but the plainly decoding sequences; 0 tokens: it got no budget
    preempted  whether somebody had to leave for want of pages
    reason     why the admission pass ended with someone still waiting
    repeat     steps after which the plan must be made again, at the latest
    until      time after which it must be, at the first step boundary (or None)
    growth     pages that each of the `repeat` steps begins to fill, beside those the plan has filled (0 first)

    The rest is the row of the log (`sim.events.RUN`): slots by what they do, positions, pages.
    """

    preempted = False
    reason = Reason.NO_DEMAND
    repeat = 1
    until: Nanoseconds | None = None
    growth: array[int] = NO_GROWTH
    decode_rows = 0
    prefill_rows = 0
    recomputed_rows = 0
    held_rows = 0
    idle_rows = 0
    tokens = 0
    redone = 0
    padding = 0

    def __init__(self, start: Nanoseconds, budget: int) -> None:
        self.start = start
        self.budget = budget
        self.work: list[tuple[Sequence, int]] = []

    def withdraw(self, seq: Sequence) -> int:
        """Take back what the step would have computed for this sequence; returns those tokens."""
        for place, (other, tokens) in enumerate(self.work):
            if other is seq:
                del self.work[place]
                self.budget += tokens
                return tokens
        return 0

    def count_decoders(self, decoders: int, context: int) -> None:
        """Enter the sequences that simply decode, with their computed positions in all."""
        self.decodes = self.decode_rows = self.tokens = decoders
        self.context = context

    def count(self, seq: Sequence, tokens: int) -> None:
        """Enter one of `work` into the shape and into exactly one row of the ledger."""
        start = seq.computed
        if not tokens:
            self.idle_rows += 1
            return
        self.tokens += tokens
        again = seq.peak - start
        if seq.over:
            self.held_rows += 1
        elif again > 0:
            self.recomputed_rows += 1
            self.redone += min(again, tokens)
        elif start < seq.request.prompt:
            self.prefill_rows += 1
        else:
            self.decode_rows += 1
        if again > 0 or start < seq.request.prompt:
            self.add_chunk(start, tokens)
        else:
            self.decodes += 1
            self.context += start
