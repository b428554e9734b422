"""Failure of an engine: it stops at once, its memory is lost, and the steps in flight never end.

What plans had counted ahead is taken back, so that every sequence is as the last step that ended left it. Then each
one that had not ended is treated by `fate`:

    PREEMPTED    it is recomputed on this engine after the restart; what waited goes on waiting
    MOVED        it leaves, with the tokens it has
    INTERRUPTED  it leaves, and all its tokens are lost

Waiting sequences keep positions that are on the host, or whose KV was sent along. Two things are not taken back: a
preemption in a plan whose step never ended, and tokens in flight that a service counter of the order has counted.
Independent of clocks and of other engines.
"""

from __future__ import annotations

from collections.abc import Sequence as Several
from dataclasses import dataclass, field

from sim.engine.apart.batch import ApartBatch
from sim.engine.apart.scheduler import ApartScheduler
from sim.engine.apart.shutdown import ApartShutdown
from sim.engine.batch import Batch
from sim.engine.planner import Planner
from sim.engine.scheduler import Scheduler
from sim.log.events import DEQUEUED, PREEMPTED, RELEASED, Kind
from sim.request import Leg, Nanoseconds
from sim.sequence import Sequence


@dataclass(frozen=True)
class Failure:
    """What a failure did.

    fate   PREEMPTED, MOVED or INTERRUPTED
    since  when the step that was cut began, ns: what it cost bought nothing
    gone   the sequences that left, each with what goes on of it elsewhere
    """

    fate: Kind
    since: Nanoseconds
    gone: list[tuple[Sequence, Leg]] = field(default_factory=list)


def fail(scheduler: Planner, now: Nanoseconds, since: Nanoseconds, in_flight: Several[Batch], fate: Kind) -> Failure:
    """Stop an engine at `now`; of the batches `in_flight`, steps have not ended, the first of them begun `since`."""
    failure = Failure(fate, since)
    if isinstance(scheduler, ApartScheduler):
        batches = [batch for batch in in_flight if isinstance(batch, ApartBatch)]
        shutdown = ApartShutdown(scheduler, now, batches, fate)
        shutdown.run(since)
        failure.gone.extend(shutdown.gone)
        return failure
    Shutdown(scheduler, now, in_flight, failure).run()
    return failure


class Shutdown:
    """One failure being carried out."""

    def __init__(self, scheduler: Scheduler, now: Nanoseconds, in_flight: Several[Batch], failure: Failure) -> None:
        self.scheduler = scheduler
        self.state = scheduler.state
        self.log = scheduler.log
        self.now = now
        self.failure = failure
        self.ended_steps = scheduler.log.steps
        self.elsewhere: dict[int, Sequence] = {}  # those whose KV is on another engine, by index
        self.starts: dict[int, int] = {}  # positions before the steps in flight, by index
        self.before: dict[int, int] = {}  # the step of the token before the one in flight, by index
        for batch in in_flight:
            for seq, start, tokens in batch.work:
                if tokens and not batch.row.done:
                    self.starts.setdefault(seq.index, start)
            for seq, step in batch.yields:
                if batch.row.done < batch.row.steps:
                    self.before.setdefault(seq.index, step)

    def run(self) -> None:
        """Empty the memory, then treat those that have not ended by their fate."""
        state = self.state
        running = list(state.running.values())
        self.elsewhere = {**state.handover.away, **state.handover.remote}
        waiting = list(state.waiting.order)
        self.log.forget_steps_in_flight()
        for seq in running:
            self.take_out(seq)
        self.scheduler.reset(self.ended_steps)
        if state.pool.remembers:
            self.log.rest(self.failure.since, 0)
        if self.failure.fate == PREEMPTED:
            for seq in waiting:
                self.queue_again(seq)
            for seq in reversed(running):
                if not seq.ended:
                    self.preempt(seq)
            return
        for seq in running:
            if not seq.ended:
                self.depart(seq, RELEASED, seq.computed)
        for seq in waiting:
            self.roll_back(seq)
            state.waiting.pop(seq)
            self.depart(seq, DEQUEUED, seq.computed if seq.serial >= 0 else 0)

    def take_out(self, seq: Sequence) -> None:
        """A sequence loses its slot and its pages; one that had ended has nothing else to lose."""
        state = self.state
        decoded = seq.decoding
        if decoded:
            state.decoders.leave(seq)
            for listener in state.listeners:
                listener.paused(seq, state.decoders.step)
        self.roll_back(seq)
        if decoded and seq.last_step >= seq.joined:
            self.log.stint(seq.index, seq.joined, seq.last_step + 1)
        if seq.entered < self.ended_steps:
            self.log.stay(seq.index, seq.entered, self.ended_steps)
        seq.pages.lose()
        if seq in state.leaving.abandoned:
            self.log.event(self.now, RELEASED, seq.index, seq.over)
            state.depart(seq)
        elif seq.ended:
            state.release(seq, self.now)

    def roll_back(self, seq: Sequence) -> None:
        """Take back the tokens and positions that the steps in flight would have brought."""
        seq.roll_back(self.ended_steps, self.starts.get(seq.index), self.before.get(seq.index))
        if not seq.ended:
            self.state.reopen(seq)

    def preempt(self, seq: Sequence) -> None:
        """Put a running sequence back into the queue, to be recomputed from its tokens."""
        elsewhere = seq.index in self.elsewhere
        lost = seq.lose(kept=elsewhere)
        self.log.event(self.now, PREEMPTED, seq.index, 0 if elsewhere else lost)
        if elsewhere:
            self.state.handover.expect(seq)
        self.push_back(seq)

    def queue_again(self, seq: Sequence) -> None:
        """A sequence that waited with a token in flight waits without it."""
        if seq.last_step >= self.ended_steps:
            self.state.waiting.pop(seq)
            self.roll_back(seq)
            self.push_back(seq)

    def push_back(self, seq: Sequence) -> None:
        """Enter a sequence into the queue as a preempted one."""
        state = self.state
        state.waiting.push_back(seq, state.needs(seq), self.now, state.decoders.step)

    def depart(self, seq: Sequence, way: Kind, thrown_away: int) -> None:
        """A sequence leaves the engine; its tokens go along unless they are lost with all the rest."""
        self.state.handover.forget(seq)
        if seq.index in self.elsewhere:
            thrown_away = 0
        fate = self.failure.fate
        moved = fate == Kind.MOVED
        self.state.end(seq, self.now, fate, thrown_away if moved else self.ended_steps)
        self.log.event(self.now, way, seq.index)
        self.state.depart(seq)
        leg = Leg()
        if moved:
            redone = max(seq.peak, thrown_away)
            leg = Leg(seq.known - seq.request.prompt, seq.computed - thrown_away, redone)
        self.failure.gone.append((seq, leg))
