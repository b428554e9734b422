"""Requests that come to an engine, and those that are given up: queued, rejected, discarded, aborted."""

from __future__ import annotations

from sim.engine.state import EngineState
from sim.log.events import CANCELLED, DEQUEUED, QUEUED, Kind
from sim.request import WHOLE, Leg, Nanoseconds, Request
from sim.sequence import HeldPages, Sequence, Target


class Intake:
    """The entrance of one engine.

    closed     whether a batch that runs is closed: no arrival changes it
    unsettled  whether the last arrival or abort could change what runs, so that a new plan is due at the next step
               boundary
    complaint  why the last arrival was rejected; empty if it was not
    """

    def __init__(self, state: EngineState, closed: bool) -> None:
        self.state = state
        self.closed = closed
        self.unsettled = False
        self.complaint = ""
        holds = state.pool.remembers or not state.on_demand
        self.no_pages = None if holds else HeldPages(state.pool)

    def submit(self, request: Request, now: Nanoseconds, leg: Leg = WHOLE) -> Sequence | None:
        """A request, or one leg of it, arrives: it is queued and returned, or rejected (None, see `complaint`)."""
        state = self.state
        index = state.log.add(request)
        seq = self.sequence(request, index, leg)
        self.complaint = self.misfit(seq) or ("" if leg.given else self.refusal(seq, now))
        if self.complaint:
            state.log.reject(now, index, self.complaint)
            self.unsettled = False
            return None
        state.log.event(now, QUEUED, index, leg.redone)
        if leg.fetches:
            state.handover.expect(seq)
        nobody_waits = not state.waiting.count
        needs = state.needs(seq)
        state.waiting.push(seq, needs, now, state.decoders.step)
        self.unsettled = not self.closed and self.may_enter(needs, nobody_waits)
        return seq

    def may_enter(self, needs: int, nobody_waited: bool) -> bool:
        """Whether a plan made now could admit a sequence that has just been queued, or put it in place of another."""
        state = self.state
        config = state.config
        if len(state.running) >= config.most_active:
            closed = state.decoders.step < state.admissions.closed_until
            return state.takes_slots or (nobody_waited and (closed or config.most_active < config.slots))
        behind = state.waiting.order.appends and not nobody_waited and not config.chunk_limit
        return not behind or needs <= state.pool.free

    def sequence(self, request: Request, index: int, leg: Leg) -> Sequence:
        """A request as this engine would serve it; it is not submitted."""
        config = self.state.config
        target = Target(request, leg, config.evict_late, config.longest, config.depth - 1)
        return Sequence(request, index, leg, target, self.no_pages or HeldPages(self.state.pool))

    def misfit(self, seq: Sequence) -> str:
        """Why a sequence could not run even alone; empty if it could."""
        config, pool = self.state.config, self.state.pool
        if seq.request.prompt >= config.longest:
            return "prompt leaves no room for an output"
        if pool.pages_for(seq.target.most) > pool.pages:
            return "needs more pages than exist"
        if not config.chunked and seq.request.prompt > config.token_budget:
            return "prompt exceeds the token budget"
        return ""

    def refusal(self, seq: Sequence, now: Nanoseconds) -> str:
        """Why a sequence that could run is rejected now: the queue is full, or a limit of the order; else empty."""
        limit = self.state.config.queue_limit
        if limit is not None and self.state.waiting.count >= limit:
            return "queue is full"
        return self.state.waiting.order.refusal(seq, now)

    def discard(self, request: Request, now: Nanoseconds) -> None:
        """A request arrives that its client cancelled on the way: it is only entered in the log."""
        log = self.state.log
        index = log.add(request)
        log.event(now, QUEUED, index)
        log.end(now, CANCELLED, index, log.steps)
        log.event(now, DEQUEUED, index)

    def abort(self, seq: Sequence, now: Nanoseconds, kind: Kind) -> None:
        """The client gives up (CANCELLED) or the request times out (TIMED_OUT), unless it has ended.

        Slot and pages are free from the next plan on; tokens of steps that end later are not delivered. All steps
        that have ended must be committed.
        """
        state = self.state
        self.unsettled = False
        if seq.ended:
            return
        state.end(seq, now, kind, 0 if kind is Kind.MOVED else state.log.steps)
        state.handover.forget(seq)
        state.leaving.departed.append(seq)
        if seq.serial in state.running:
            state.leaving.abandoned.append(seq)
            self.unsettled = True
        else:
            state.dequeue(seq, now)
            closed = state.decoders.step < state.admissions.closed_until
            self.unsettled = closed or state.takes_slots or len(state.running) < state.config.slots

    def reset(self) -> None:
        """Nothing runs any more, after a failure."""
        self.unsettled = False
