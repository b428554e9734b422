"""An engine stops at once: its memory is lost, and the steps in flight never end.

What a plan had counted ahead is taken back, so that every sequence is again as the last step that ended left it.
Then each one that had not ended gets its fate:

    PREEMPTED    it starts over from its tokens on this engine, when that is there again; what waited goes on waiting
    MOVED        it leaves, with the tokens it has been given
    INTERRUPTED  it leaves, and has nothing

What waits with positions on the host, or with KV that was sent along, has not lost them. Two things are not taken
back: a preemption in a plan whose step never ended, and what a service counter of the order had heard of tokens in
flight. Knows no clock and no other engine.
"""

from __future__ import annotations

from collections.abc import Sequence as Several

from sim.engine.batch import Batch
from sim.engine.scheduler import Scheduler
from sim.log.events import DEQUEUED, PREEMPTED, RELEASED, Kind
from sim.request import Leg, Nanoseconds, Sequence


class Crash:
    """What happens to an engine that stops at `now`; `in_flight` are the batches of which a step runs or is to run.

    since  when the step that was cut began: what it cost bought nothing
    gone   who has left, each with what it takes along
    """

    def __init__(
        self, engine: Scheduler, now: Nanoseconds, since: Nanoseconds, in_flight: Several[Batch], fate: Kind
    ) -> None:
        self.engine = engine
        self.now = now
        self.since = since
        self.fate = fate
        self.gone: list[tuple[Sequence, Leg]] = []
        self.ended_steps = engine.log.steps
        self.starts: dict[int, int] = {}  # positions before the steps in flight, by index
        self.before: dict[int, int] = {}  # the step of the token before the one in flight, by index
        for batch in in_flight:
            for seq, start, tokens in batch.work:
                if tokens and not batch.done:
                    self.starts.setdefault(seq.index, start)
            for seq, step in batch.yields:
                if batch.done < batch.steps:
                    self.before.setdefault(seq.index, step)
        self.take_down()

    def take_down(self) -> None:
        """Everybody leaves the memory, then those who have not ended meet their fate."""
        engine = self.engine
        running = list(engine.running.values())
        waiting = list(engine.order)
        engine.log.forget_steps_in_flight()
        for seq in running:
            self.take_out(seq)
        self.clear()
        if self.fate == PREEMPTED:
            for seq in waiting:
                self.queue_again(seq)
            for seq in reversed(running):
                if not seq.ended:
                    self.preempt(seq)
            return
        for seq in running:
            if not seq.ended:
                self.depart(seq, seq.computed, RELEASED)
        for seq in waiting:
            self.roll_back(seq)
            engine.waiting.pop(seq)
            self.depart(seq, seq.computed if seq.entered >= 0 else 0, DEQUEUED)

    def take_out(self, seq: Sequence) -> None:
        """A sequence loses its slot and its pages; one that had ended has nothing else to lose."""
        engine = self.engine
        decoded = seq.decoding
        if decoded:
            engine.decoders.leave(seq)
            if engine.order.counts_service:
                engine.order.paused(seq, engine.decoders.step)
        self.roll_back(seq)
        if decoded and seq.last_step >= seq.joined:
            engine.log.stint(seq.index, seq.joined, seq.last_step + 1)
        if seq.entered < self.ended_steps:
            engine.log.stay(seq.index, seq.entered, self.ended_steps)
        seq.table = []
        seq.pages = 0
        if seq in engine.abandoned:
            engine.log.event(self.now, RELEASED, seq.index, seq.over)
            engine.depart(seq)
        elif seq.ended:
            engine.log_release(seq, self.now)

    def roll_back(self, seq: Sequence) -> None:
        """Take back the tokens and positions that the steps in flight would have brought."""
        lost = 0
        if seq.last_step >= self.ended_steps:
            lost = seq.last_step + 1 - max(self.ended_steps, seq.joined - 1)
            seq.known -= lost
            seq.last_step = self.before.get(seq.index, self.ended_steps - 1)
        if seq.index in self.starts and seq.computed:
            seq.computed = self.starts[seq.index]
        elif seq.computed:
            seq.computed -= lost
        if not seq.ended:
            seq.over = False

    def clear(self) -> None:
        """The engine is empty but for those who wait."""
        engine = self.engine
        engine.running, engine.catching_up = {}, {}
        engine.finished, engine.riding, engine.abandoned = [], [], []
        engine.over = engine.computed = engine.reach = engine.touched = engine.swapping = 0
        engine.unsettled = False
        engine.decoders.go_back(self.ended_steps)
        engine.pool.lose_all()
        if engine.pool.remembers:
            engine.log.rest(self.since, 0)

    def preempt(self, seq: Sequence) -> None:
        """It goes back to the queue, and starts over from its tokens."""
        engine = self.engine
        engine.log.event(self.now, PREEMPTED, seq.index, seq.computed)
        seq.peak = max(seq.peak, seq.computed)
        seq.computed = 0
        engine.waiting.push_back(seq, engine.needs(seq), self.now, engine.decoders.step)

    def queue_again(self, seq: Sequence) -> None:
        """One who waited with a token in flight waits for it again."""
        if seq.last_step >= self.ended_steps:
            engine = self.engine
            engine.waiting.pop(seq)
            self.roll_back(seq)
            engine.waiting.push_back(seq, engine.needs(seq), self.now, engine.decoders.step)

    def depart(self, seq: Sequence, thrown_away: int, way: Kind) -> None:
        """It leaves the engine; its tokens go along unless they are lost with all the rest."""
        engine = self.engine
        seq.ended = True
        moved = self.fate == Kind.MOVED
        engine.log.event(self.now, self.fate, seq.index, thrown_away if moved else self.ended_steps)
        engine.log.event(self.now, way, seq.index)
        engine.log.ended += 1
        engine.depart(seq)
        if moved:
            ready = seq.computed - thrown_away
            redone = max(seq.peak, thrown_away)
            self.gone.append((seq, Leg(seq.known - seq.request.prompt, ready, redone)))
        else:
            self.gone.append((seq, Leg()))
