"""The progress of a request on an engine with passes of one kind (ApartSequence)."""

from __future__ import annotations

from sim.request import Request
from sim.sequence import HeldPages, Lookup, Sequence, Target


class ApartSequence(Sequence):
    """A sequence, with what this planner alone needs. Steps of a `Sequence` count the passes that decode.

    limit         most tokens it may produce: its own limit, or less where context or memory are shorter
    by_length     it ends because it reaches its limit, which the engine knows beforehand; otherwise by its last token
    fixed_length  it is known to produce all the tokens it may
    until         while it decodes: the count of decodes with which it would reach its limit
    prefix        positions that were there when its present chunk was planned
    fill          known tokens when it was last looked up for admission
    place         where it stands in the running batch: after all with a smaller one
    arrived       number of its latest entry into the queue
    since         the pass from which on it decodes
    latest        the pass that brings its latest token, while it does not decode; -1 before the first
    before        the pass that brought the token before the first of its present stay, -1 if there was none
    """

    __slots__ = (
        *("arrived", "before", "by_length", "fill", "fixed_length", "latest"),
        *("limit", "place", "prefix", "since", "until"),
    )

    def __init__(self, request: Request, index: int, limit: int, pool: Lookup) -> None:
        target = Target(request, overrun=1, max_model_len=request.prompt + limit)
        super().__init__(request, index, target=target, pages=HeldPages(pool))
        self.limit = limit
        self.by_length = request.output >= limit
        self.fixed_length = request.patience.ignore_eos
        self.until = self.prefix = self.fill = self.arrived = self.since = self.place = 0
        self.latest = self.before = -1

    def first_token(self, number: int, step: int) -> None:
        """Pass `number` completes its prefill and brings a token; `step` passes that decode have been planned."""
        self.catch_up(step)
        self.before, self.latest, self.since = self.latest, number, number + 1

    def drop_token(self, decode_before: int) -> None:
        """Its latest token is lost; `decode_before`: the pass that decoded before the latest that did."""
        self.known -= 1
        self.latest = max(decode_before, self.since - 1) if self.since <= self.latest else self.before
