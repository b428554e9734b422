"""What one step computes (Batch): the decision of the scheduler, with all that the log and the cost use of it."""

from __future__ import annotations

from array import array

from sim.cost.forms import Shape
from sim.log.events import NO_DEMAND
from sim.memory.pool import Found
from sim.request import Nanoseconds, Sequence

NO_GROWTH = array("q", [0])


class Batch(Shape):
    """The work of one step, and for how many steps the same batch may repeat.

    planned    when it was planned, ns; `start`: when its next step to be committed starts, set by the driver
    budget     tokens that may still be added
    work       (sequence, start, tokens) of all that do not simply decode; 0 tokens: no budget was left
    served     tokens by admission number, where the running sequences were served one by one
    preempted  whether a sequence was preempted for want of pages
    reason     why the admission pass ended with sequences still waiting
    refused    whether it ended because memory was short or the admission rule refused
    found      cached pages of the sequence at which the admission pass ended
    repeat     the plan must be made again after so many steps at the latest
    until      time from which it must be made again, at the first step boundary (None: never)
    growth     pages that each of the `repeat` steps begins to fill, in addition to those of the plan (0 first)
    durations  of the steps to come, ns, where the driver has computed them
    steps      how many of these steps count as planned; `done` of them are committed
    yields     (sequence, step of its token before) of those in `work` that get a token
    ends       sequences whose last token the last planned step brings

    The rest is the row of the log (`sim.log.events.RUN`): slots by what they do, positions, pages.
    """

    __slots__ = (
        "budget",
        "cached",
        "decode_rows",
        "decoder_context",
        "done",
        "durations",
        "ends",
        "found",
        "growth",
        "held_pages",
        "held_rows",
        "idle_rows",
        "live",
        "padding",
        "planned",
        "preempted",
        "prefill_rows",
        "reason",
        "recomputed_rows",
        "redone",
        "refused",
        "repeat",
        "served",
        "start",
        "steps",
        "tokens",
        "until",
        "waiting",
        "work",
        "yields",
    )

    def __init__(self, planned: Nanoseconds, budget: int) -> None:
        super().__init__()
        self.planned = self.start = planned
        self.budget = budget
        self.work: list[tuple[Sequence, int, int]] = []
        self.yields: list[tuple[Sequence, int]] = []
        self.ends: list[Sequence] = []
        self.preempted = self.refused = False
        self.reason = NO_DEMAND
        self.repeat = self.steps = 1
        self.until: Nanoseconds | None = None
        self.growth = self.durations = NO_GROWTH
        self.served: dict[int, int] | None = None
        self.found: Found | None = None
        self.decode_rows = self.prefill_rows = self.recomputed_rows = self.held_rows = self.idle_rows = 0
        self.done = self.waiting = self.tokens = self.redone = self.padding = 0
        self.decoder_context = self.live = self.held_pages = self.cached = 0

    def tokens_of(self, seq: Sequence) -> int:
        """Positions that the step computes of a running sequence."""
        if seq.decoding:
            return 1 if self.served is None else self.served.get(seq.serial, 0)
        return sum(tokens for other, _, tokens in self.work if other is seq)

    def withdraw(self, seq: Sequence) -> int:
        """Take a sequence out of the step; returns the positions that the step would have computed of it."""
        tokens = self.tokens_of(seq)
        if seq.decoding:
            if self.served is not None:
                self.served.pop(seq.serial, None)
        else:
            self.work = [entry for entry in self.work if entry[0] is not seq]
        return tokens

    def count(self, seq: Sequence, start: int, tokens: int) -> None:
        """Count one entry of `work` in the shape and, unless the sequence is over, in one row of the ledger."""
        if not tokens:
            self.idle_rows += not seq.over
            return
        self.tokens += tokens
        again = seq.peak - start
        if seq.over:
            pass
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
            self.longest = max(self.longest, start)

    def row(self, steps: int) -> tuple[int, ...]:
        """The row of the log for the next `steps` steps to be committed."""
        return (
            self.planned,
            self.start,
            steps,
            self.decode_rows,
            self.prefill_rows,
            self.recomputed_rows,
            self.held_rows,
            self.idle_rows,
            self.waiting,
            self.reason,
            self.tokens,
            self.redone,
            self.padding,
            self.decoder_context,
            self.live,
            self.pages,
            self.held_pages,
            self.cached,
        )

    def pass_over(self, steps: int, on_demand: bool) -> None:
        """Advance the row of the log past `steps` committed steps, to the next one."""
        grown = sum(self.growth[self.done - steps + 1 : self.done + 1])
        self.decoder_context += self.decode_rows * steps
        self.live += self.tokens * steps
        self.pages += grown
        if on_demand:
            self.held_pages += grown
