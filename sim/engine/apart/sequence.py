"""The progress of a request on an engine with passes of one kind (ApartSequence)."""

from __future__ import annotations

from sim.request import Request, Sequence


class ApartSequence(Sequence):
    """A sequence, with what this planner alone needs.

    limit      most tokens it may produce: its own limit, or less where context or memory are shorter
    by_length  it ends because it reaches its limit, which the engine knows beforehand; otherwise by its last token
    fixed_length  it is known to produce all the tokens it may
    until      while it decodes: the count of decodes with which it would reach its limit
    prefix     positions that were there when its present chunk was planned
    fill       known tokens when it was last looked up for admission
    arrived    number of its latest entry into the queue
    before     the pass that brought the token before the first of its present stay, -1 if there was none
    """

    __slots__ = ("arrived", "before", "by_length", "fill", "fixed_length", "limit", "prefix", "until")

    def __init__(self, request: Request, index: int, limit: int) -> None:
        super().__init__(request, index)
        self.limit = limit
        self.fixed_length = request.ignore_eos
        self.until = 0
        self.by_length = request.output >= limit
        awaited = min(request.output, limit)
        if request.cancel_tokens is not None:
            awaited = min(awaited, request.cancel_tokens)
        self.cut_short = awaited < min(request.output, limit)
        self.goal = request.prompt + awaited - 1
        self.most = request.prompt + limit
        self.prefix = self.fill = 0
        self.arrived = 0
        self.before = -1
