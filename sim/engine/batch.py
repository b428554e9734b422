"""The plan of a step (Batch): what it computes and how long it holds; and the row of the log it becomes (Row)."""

from __future__ import annotations

from array import array

from sim.cost.shape import Shape
from sim.log.events import NO_DEMAND, EventLog
from sim.memory.pool import Found
from sim.request import Nanoseconds
from sim.sequence import Sequence

NO_GROWTH = array("q", [0])


class Row:
    """What the log says of the next step of a batch to be committed (`sim.log.step_records`), and how many like it.

    start   when it starts, ns
    steps   how many steps of the batch count as planned; `done` of them are committed
    decode  slots by what they do, and so on: the columns of that name; `pages` those held
    """

    __slots__ = (
        "cached",
        "context",
        "decode",
        "done",
        "held",
        "live",
        "no_budget",
        "padding",
        "pages",
        "prefill",
        "recomputed",
        "redone",
        "start",
        "steps",
        "waiting",
    )

    def __init__(self, start: Nanoseconds) -> None:
        self.start = start
        self.steps = 1
        self.done = self.prefill = self.recomputed = self.no_budget = self.redone = self.padding = 0
        self.decode = self.held = self.waiting = self.context = self.live = self.pages = self.cached = 0

    def begin(self, now: Nanoseconds) -> None:
        """The next step to be committed starts now."""
        self.start = now


class Batch(Shape):
    """The plan of a step. As a shape it is what the cost depends on.

    planned    when it was planned, ns
    budget     tokens that may still be added
    work       (sequence, start, tokens) of all that do not simply decode; 0 tokens: no budget was left
    served     tokens by admission number, where the running sequences were served one by one
    preempted  whether a sequence was preempted for want of pages
    reason     why the admission pass ended with sequences still waiting
    refused    whether it ended because memory was short or the admission rule refused
    found      cached pages of the sequence at which the admission pass ended
    growth     pages that each step for which the plan holds begins to fill, besides those of the plan (0 first);
               after so many steps it must be made again
    until      time from which it must be made again, at the first step boundary (None: never)
    durations  of the steps to come, ns, where the driver has computed them
    yields     (sequence, step of its token before) of those in `work` that get a token
    ends       sequences whose last token the last planned step brings
    tokens     positions that the step computes
    row        what the log says of it
    """

    __slots__ = (
        "budget",
        "durations",
        "ends",
        "found",
        "growth",
        "planned",
        "preempted",
        "reason",
        "refused",
        "row",
        "served",
        "tokens",
        "until",
        "work",
        "yields",
    )

    def __init__(self, planned: Nanoseconds, budget: int) -> None:
        Shape.__init__(self)
        self.planned = planned
        self.budget = budget
        self.work: list[tuple[Sequence, int, int]] = []
        self.served: dict[int, int] | None = None
        self.preempted = self.refused = False
        self.reason = NO_DEMAND
        self.found: Found | None = None
        self.yields: list[tuple[Sequence, int]] = []
        self.ends: list[Sequence] = []
        self.tokens = 0
        self.until: Nanoseconds | None = None
        self.growth = self.durations = NO_GROWTH
        self.row = Row(planned)

    def spend(self, tokens: int) -> None:
        """So many tokens go to decoding sequences."""
        self.budget -= tokens

    def add(self, seq: Sequence, start: int, tokens: int) -> None:
        """The step computes `tokens` positions of a sequence after `start`."""
        self.work.append((seq, start, tokens))
        self.budget -= tokens

    def tokens_of(self, seq: Sequence) -> int:
        """Positions that the step computes of a running sequence."""
        if seq.decoding:
            return 1 if self.served is None else self.served.get(seq.serial, 0)
        return sum(tokens for other, _, tokens in self.work if other is seq)

    def withdraw(self, seq: Sequence) -> int:
        """Take a sequence out of the step; returns its positions of this step, which return to the budget."""
        tokens = self.tokens_of(seq)
        self.budget += tokens
        if seq.decoding:
            if self.served is not None:
                self.served.pop(seq.serial, None)
        else:
            self.work = [entry for entry in self.work if entry[0] is not seq]
        return tokens

    def count(self, seq: Sequence, start: int, tokens: int) -> None:
        """Count one entry of `work` in the shape and, unless the sequence is over, in one row of the ledger."""
        row = self.row
        if not tokens:
            row.no_budget += not seq.over
            return
        self.tokens += tokens
        again = seq.peak - start
        if seq.over:
            pass
        elif again > 0:
            row.recomputed += 1
            row.redone += min(again, tokens)
        elif start < seq.request.prompt:
            row.prefill += 1
        else:
            row.decode += 1
        if again > 0 or start < seq.request.prompt:
            self.add_chunk(start, tokens)
        else:
            self.add_decode(start)

    def log_work(self, log: EventLog) -> None:
        """Log what the step computes of those that do not simply decode."""
        for seq, start, tokens in self.work:
            if tokens:
                log.chunk(seq.index, start, tokens)

    def row_of(self, steps: int) -> tuple[int, ...]:
        """The row of the log for the next `steps` steps to be committed."""
        row = self.row
        return (
            self.planned,
            row.start,
            steps,
            row.decode,
            row.prefill,
            row.recomputed,
            row.held,
            row.no_budget,
            row.waiting,
            self.reason,
            self.tokens,
            row.redone,
            row.padding,
            row.context,
            row.live,
            self.pages,
            row.pages,
            row.cached,
        )

    def pass_over(self, steps: int, on_demand: bool) -> None:
        """Advance the row of the log past `steps` committed steps, to the next one."""
        row = self.row
        grown = sum(self.growth[row.done - steps + 1 : row.done + 1])
        row.context += row.decode * steps
        row.live += self.tokens * steps
        self.add_pages(grown)
        if on_demand:
            row.pages += grown
