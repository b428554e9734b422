"""State of an engine with passes of one kind: who runs, who is being prefilled, what is in flight, what is logged.

A sequence has `known` tokens and `computed` positions as everywhere in the kernel. Decoders advance together in the
passes that decode (`Decoders.step` counts these); `Passes` counts all, as the log does.
"""

from __future__ import annotations

from sim.engine.apart.config import ApartConfig
from sim.engine.apart.counters import Gate, Members, Passes, Totals
from sim.engine.apart.ratio import NewTokenRatio
from sim.engine.apart.sequence import ApartSequence
from sim.engine.counters import Leaving
from sim.engine.decoding import Decoders
from sim.log.events import CANCELLED, FINISHED, RELEASED, EventLog, Kind
from sim.memory.pool import PagePool
from sim.policy.base import Policy
from sim.request import Nanoseconds


class ApartState:
    """Mutable state of one engine.

    members   the sequences with a request row
    decoders  those of them that compute one token in every pass that decodes
    gate      whether a prefill is tried
    leaving   sequences that have ended
    totals    sums over those with a row
    passes    what has been planned
    """

    def __init__(self, policy: Policy, pool: PagePool, config: ApartConfig) -> None:
        self.order = policy.order
        self.admission = policy.admission
        self.pool = pool
        self.config = config
        self.log = EventLog(config.slots, pool.pages, pool.page_size, True, config.depth, pool.use)
        self.ratio = NewTokenRatio(config.ratio)
        self.decoders = Decoders(pool.page_size)
        self.members = Members()
        self.gate = Gate()
        self.leaving = Leaving()
        self.totals = Totals()
        self.passes = Passes()

    # ------------------------------------------------------------------ what has been produced

    def latest(self, seq: ApartSequence) -> int:
        """The pass that brings the latest token of a sequence."""
        return max(self.passes.decode, seq.since - 1) if seq.decoding else seq.latest

    def outputs(self, seq: ApartSequence) -> int:
        """Tokens that a sequence has produced and the engine has seen."""
        in_flight = self.latest(seq) >= self.log.steps
        return seq.generated(self.decoders.step) - in_flight

    # ------------------------------------------------------------------ the queue

    def enqueue(self, seq: ApartSequence, now: Nanoseconds, returns: bool = False) -> None:
        """A sequence enters the queue, or returns to it."""
        seq.arrived = self.totals.entries
        self.totals.entries += 1
        if returns and self.config.returns_to == "front":
            self.order.push_back(seq, now, self.decoders.step)
        else:
            self.order.push(seq, now, self.decoders.step)

    # ------------------------------------------------------------------ one sequence

    def enter(self, seq: ApartSequence, found: int) -> None:
        """Give a sequence a row; `found` positions are in the cache, and pinned."""
        if self.pool.use is not None:
            self.pool.use.look_up(seq.known, again=seq.entered >= 0)
        seq.enter(self.totals.admissions, self.passes.planned, found)
        self.totals.admissions += 1
        self.totals.holders += 1
        self.totals.computed += found

    def join(self, seq: ApartSequence) -> None:
        """A sequence decodes from the pass being planned on."""
        self.decoders.join(seq)
        seq.until = seq.limit + seq.request.prompt - 1 - seq.computed + self.decoders.step
        self.totals.until += seq.until
        self.totals.known += seq.fixed_length
        for listener in self.order.listeners:
            listener.decoding(seq, self.decoders.step)

    def stop(self, seq: ApartSequence) -> None:
        """A decoder decodes no further; its progress is stored in it again."""
        latest = self.latest(seq)
        self.decoders.leave(seq)
        self.stopped(seq, latest)

    def stopped(self, seq: ApartSequence, latest: int) -> None:
        """A sequence has left the decoders; pass `latest` brings its latest token."""
        seq.latest = latest
        self.totals.until -= seq.until
        self.totals.known -= seq.fixed_length
        for listener in self.order.listeners:
            listener.paused(seq, self.decoders.step)

    def close(self, seq: ApartSequence) -> None:
        """The last token of a sequence is planned."""
        seq.over = True
        self.totals.over += 1

    def close_stint(self, seq: ApartSequence) -> None:
        """Log the passes that brought a token to a sequence that has stopped decoding."""
        if seq.since <= seq.latest:
            self.log.stint(seq.index, seq.since, seq.latest + 1)
        seq.since = seq.latest + 1

    def take_back(self, seq: ApartSequence) -> None:
        """Drop the token of a sequence that is in flight, if there is one; it does not decode."""
        if seq.latest < self.log.steps:
            return
        seq.drop_token(self.passes.decode_before)
        if seq.over:
            seq.over = False
            self.totals.over -= 1

    def release(self, seq: ApartSequence, finished: bool) -> None:
        """Free the row and the memory of a sequence that does not decode; those of a finished one stay cached."""
        if finished:
            self.pool.publish(seq, seq.computed)
        self.pool.give_back(seq, self.pool.pages_for(seq.computed))
        self.totals.computed -= seq.computed
        self.totals.holders -= 1
        if seq.entered < self.passes.planned:
            self.log.stay(seq.index, seq.entered, self.passes.planned)
        seq.serial = -1

    def end(self, seq: ApartSequence, now: Nanoseconds, kind: Kind) -> None:
        """Log the end of a sequence: all its tokens (FINISHED), or all that its client waits for; or an abort."""
        complete = kind is FINISHED and not seq.target.cut_short
        seq.outcome = FINISHED if complete else CANCELLED if kind is FINISHED else kind
        value = seq.target.goal + 1 - seq.request.prompt if complete else self.log.steps
        self.log.end(now, seq.outcome, seq.index, value)
        self.leaving.departed.append(seq)

    def leave(self, seq: ApartSequence, now: Nanoseconds, finished: bool) -> None:
        """A sequence that has ended gives up its row."""
        self.members.left.append(seq.serial)
        self.release(seq, finished)
        self.totals.over -= seq.over
        self.log.event(now, RELEASED, seq.index, seq.over)
        self.depart(seq)

    def depart(self, seq: ApartSequence) -> None:
        """Notify the admission rule and the listeners that a sequence is gone."""
        self.admission.left(seq)
        for listener in self.order.listeners:
            listener.left(seq, self.decoders.step)

    def check(self) -> None:
        """Check what holds once every request has ended: nothing is left over. Raises AssertionError."""
        totals = self.totals
        assert not totals.holders, f"{totals.holders} sequences still hold a row"
        assert not len(self.order), f"{len(self.order)} sequences still wait"
        assert totals.over == totals.computed == 0, "something is counted that is not there"
        self.decoders.check()
        self.pool.check()
