"""State of an engine with passes of one kind: who runs, who is being prefilled, what is in flight, what is logged.

A sequence has `known` tokens and `computed` positions as everywhere in the kernel. Decoders advance together in the
passes that decode (`Decoders.step` counts these); `passes` counts all, as the log does.
"""

from __future__ import annotations

from sim.engine.apart.config import ApartConfig
from sim.engine.apart.ratio import NewTokenRatio
from sim.engine.apart.sequence import ApartSequence
from sim.engine.decoding import Decoders
from sim.log.events import CANCELLED, FINISHED, NO_DEMAND, RELEASED, EventLog, Kind, Reason
from sim.memory.pool import PagePool
from sim.policy.base import Order
from sim.request import Nanoseconds


class ApartState:
    """Mutable state of one engine.

    running      sequences in the running batch, in its order
    last         those of the pass planned last, if it was a prefill: they join `running` with the next plan
    chunked      the one sequence whose prompt is being computed in parts
    full         no prefill is tried until a sequence leaves; `obstacle`: what it was that made the batch full
    some_left    a sequence has left since the last plan
    holders      sequences with a request row
    wait         plans to come without a prefill
    ending       sequences whose token in flight is their last, which the engine knows
    riding       sequences whose token in flight is their last, which the engine does not know
    abandoned    sequences with a row, given up by their clients since the last plan
    departed     ended, and not yet reported to the driver
    over         sequences with a row that have all their tokens
    computed     positions of all sequences with a row
    passes       passes planned so far
    last_decode  the latest pass that decoded, and `decode_before` the one before it; -1 before the first
    begun        tokens of the prefill that the running batch began as; `extended`: of the latest prefill
    """

    def __init__(self, order: Order, pool: PagePool, config: ApartConfig) -> None:
        self.order = order
        self.pool = pool
        self.config = config
        self.log = EventLog(config.slots, pool.pages, pool.page_size, True, config.depth, pool.use)
        self.ratio = NewTokenRatio(config.initial_ratio, config.minimum_ratio, config.decay_passes)
        self.decoders = Decoders(pool.page_size)
        self.running: list[ApartSequence] = []
        self.last: list[ApartSequence] = []
        self.chunked: ApartSequence | None = None
        self.full = self.some_left = False
        self.obstacle: Reason = NO_DEMAND
        self.holders = self.wait = self.over = self.computed = self.passes = 0
        self.ending: list[ApartSequence] = []
        self.riding: list[ApartSequence] = []
        self.abandoned: list[ApartSequence] = []
        self.departed: list[ApartSequence] = []
        self.last_decode = self.decode_before = -1
        self.admissions = self.entries = self.sorts = 0
        self.begun = self.extended = 0

    # ------------------------------------------------------------------ what has been produced

    def latest(self, seq: ApartSequence) -> int:
        """The pass that brings the latest token of a sequence."""
        return max(self.last_decode, seq.joined - 1) if seq.decoding else seq.last_step

    def in_flight(self, seq: ApartSequence) -> bool:
        """Whether the latest token of a sequence is not there yet."""
        return self.latest(seq) >= self.log.steps

    def outputs(self, seq: ApartSequence) -> int:
        """Tokens that a sequence has produced and the engine has seen."""
        known = self.decoders.computed(seq) + 1 if seq.decoding else seq.known
        return known - seq.request.prompt - self.in_flight(seq)

    def positions(self, seq: ApartSequence) -> int:
        """Positions of a sequence that are computed or planned."""
        return self.decoders.computed(seq) if seq.decoding else seq.computed

    # ------------------------------------------------------------------ the queue

    def enqueue(self, seq: ApartSequence, now: Nanoseconds, returns: bool = False) -> None:
        """A sequence enters the queue, or returns to it."""
        seq.arrived = self.entries
        self.entries += 1
        if returns and self.config.returns_to == "front":
            self.order.push_back(seq, now, self.decoders.step)
        else:
            self.order.push(seq, now, self.decoders.step)

    # ------------------------------------------------------------------ decoding

    def join(self, seq: ApartSequence) -> None:
        """A sequence decodes from the pass being planned on."""
        self.decoders.join(seq)
        seq.joined = self.passes
        seq.until = seq.limit + seq.request.prompt - 1 - seq.base

    def stop(self, seq: ApartSequence) -> None:
        """A decoder decodes no further; its progress is stored in it again."""
        latest = self.latest(seq)
        self.decoders.leave(seq)
        seq.last_step = latest

    def close_stint(self, seq: ApartSequence) -> None:
        """Log the passes that brought a token to a sequence that has stopped decoding."""
        if seq.joined <= seq.last_step:
            self.log.stint(seq.index, seq.joined, seq.last_step + 1)
        seq.joined = seq.last_step + 1

    def take_back(self, seq: ApartSequence) -> None:
        """Drop the token of a sequence that is in flight, if there is one; it does not decode."""
        if seq.last_step < self.log.steps:
            return
        seq.known -= 1
        seq.last_step = max(self.decode_before, seq.joined - 1) if seq.joined <= seq.last_step else seq.before
        if seq.over:
            seq.over = False
            self.over -= 1

    # ------------------------------------------------------------------ memory and rows

    def release(self, seq: ApartSequence, finished: bool) -> None:
        """Free the row and the memory of a sequence that does not decode; what a finished one computed stays cached."""
        if finished:
            self.pool.publish(seq, seq.computed)
        self.pool.give_back(seq, self.pool.pages_for(seq.computed))
        self.computed -= seq.computed
        self.holders -= 1
        if seq.entered < self.passes:
            self.log.stay(seq.index, seq.entered, self.passes)
        seq.serial = -1

    def end(self, seq: ApartSequence, now: Nanoseconds, kind: Kind) -> None:
        """Log the end of a sequence."""
        seq.ended = True
        if kind is FINISHED and not seq.cut_short:
            seq.finished = True
            self.log.event(now, FINISHED, seq.index, seq.goal + 1 - seq.request.prompt)
        else:
            self.log.event(now, CANCELLED if kind is FINISHED else kind, seq.index, self.log.steps)
        self.log.ended += 1
        self.departed.append(seq)

    def leave(self, seq: ApartSequence, now: Nanoseconds, finished: bool) -> None:
        """A sequence that has ended gives up its row."""
        self.release(seq, finished)
        self.some_left = True
        self.over -= seq.over
        self.log.event(now, RELEASED, seq.index, seq.over)

    def check(self) -> None:
        """Check what holds once every request has ended: nothing is left over. Raises AssertionError."""
        assert not self.holders, f"{self.holders} sequences still hold a row"
        assert not len(self.order), f"{len(self.order)} sequences still wait"
        assert self.over == self.computed == 0, "something is counted that is not there"
        self.decoders.check()
        self.pool.check()
