"""Failure of an engine with passes of one kind; `sim.service.failure` says what a failure does.

It starts again as a new process: its ratio, its full batch and its cache are forgotten, its queue is not. Sequences
that ran return to the queue as those that gave up their memory do. Independent of clocks and of other engines.
"""

from __future__ import annotations

from collections.abc import Sequence as Several

from sim.engine.apart.batch import ApartBatch
from sim.engine.apart.scheduler import ApartScheduler
from sim.engine.apart.sequence import ApartSequence
from sim.log.events import DEQUEUED, PREEMPTED, RELEASED, Kind
from sim.request import Leg, Nanoseconds
from sim.sequence import Sequence


class ApartShutdown:
    """One failure being carried out.

    in_flight  batches of which passes have not ended, each with the number of the first of these passes
    decoded    the latest pass that has ended and decoded, -1 if none has
    gone       the sequences that left, each with what goes on of it elsewhere
    """

    def __init__(self, scheduler: ApartScheduler, now: Nanoseconds, batches: Several[ApartBatch], fate: Kind) -> None:
        self.scheduler = scheduler
        self.state = scheduler.state
        self.log = scheduler.log
        self.now = now
        self.fate = fate
        self.ended_passes = first = scheduler.log.steps
        self.decoded = self.state.passes.decode
        if batches:
            begun = batches[0].decoding and batches[0].row.done
            self.decoded = first - 1 if begun else batches[0].decoded_before
        self.in_flight: list[tuple[int, ApartBatch]] = []
        for batch in batches:
            self.in_flight.append((first, batch))
            first += batch.row.steps - batch.row.done
        self.gone: list[tuple[Sequence, Leg]] = []

    def run(self, since: Nanoseconds) -> None:
        """Empty the memory, then treat all that have not ended by their fate; the pass that was cut began `since`."""
        state = self.state
        running, waiting = self.holders(), list(state.order)
        self.log.forget_steps_in_flight()
        for seq in running:
            self.take_out(seq)
        decodes = sum(batch.row.steps - batch.row.done for _, batch in self.in_flight if batch.decoding)
        self.scheduler.reset(self.ended_passes, state.decoders.step - decodes, self.decoded)
        if state.pool.remembers:
            self.log.rest(since, 0)
        running = [seq for seq in running if not seq.ended]
        if self.fate == PREEMPTED:
            for seq in reversed(running):
                self.log.event(self.now, PREEMPTED, seq.index, seq.lose())
                state.enqueue(seq, self.now, returns=True)
            return
        for seq in running:
            self.depart(seq, seq.computed, RELEASED)
        for waits in waiting:
            assert isinstance(waits, ApartSequence)
            state.order.pop(waits)
            self.depart(waits, 0, DEQUEUED)

    def holders(self) -> list[ApartSequence]:
        """The sequences with a row, in the order of admission."""
        members = self.state.members
        present: list[Sequence] = [*members.running.values(), *members.last, *self.state.leaving.abandoned]
        if members.chunked is not None:
            present.append(members.chunked)
        for _, batch in self.in_flight:
            present += batch.ending
        by_serial = {seq.serial: seq for seq in present if isinstance(seq, ApartSequence) and seq.serial >= 0}
        return [by_serial[serial] for serial in sorted(by_serial)]

    def take_out(self, seq: ApartSequence) -> None:
        """A sequence loses its row and its pages; one whose client has given up has nothing else to lose."""
        if seq.decoding:
            self.state.stop(seq)
        self.roll_back(seq)
        self.state.close_stint(seq)
        if seq.entered < self.ended_passes:
            self.log.stay(seq.index, seq.entered, self.ended_passes)
        seq.pages.lose()
        seq.serial, seq.prefix = -1, 0
        if seq.ended:
            self.log.event(self.now, RELEASED, seq.index, seq.over)
            self.state.depart(seq)
        else:
            seq.over = False

    def roll_back(self, seq: ApartSequence) -> None:
        """Take back the tokens and positions that the passes in flight would have brought."""
        for first, batch in reversed(self.in_flight):
            if seq in batch.riders:
                seq.computed -= 1
            if batch.decoding:
                end = min(first + batch.row.steps - batch.row.done, seq.latest + 1)
                lost = max(0, end - max(first, seq.since))
                seq.computed -= lost
                seq.known -= lost
            for other, start, _ in batch.prefills:
                if other is seq:
                    seq.computed = start
                    self.take_back_first(seq, batch)
        if seq.latest >= self.ended_passes:
            seq.latest = max(self.decoded, seq.since - 1)

    def take_back_first(self, seq: ApartSequence, batch: ApartBatch) -> None:
        """If a prefill in flight would have brought a sequence a token, it is as before."""
        if any(other is seq for other, _, _ in batch.prefilled):
            seq.known -= 1
            seq.latest, seq.since = seq.before, seq.before + 1

    def depart(self, seq: ApartSequence, thrown_away: int, way: Kind) -> None:
        """A sequence leaves the engine; its tokens go along unless they are lost with all the rest."""
        moved = self.fate == Kind.MOVED
        seq.outcome = self.fate
        self.log.end(self.now, self.fate, seq.index, thrown_away if moved else self.ended_passes)
        self.log.event(self.now, way, seq.index)
        self.state.depart(seq)
        leg = Leg()
        if moved:
            leg = Leg(given=seq.known - seq.request.prompt, redone=max(seq.peak, thrown_away))
        self.gone.append((seq, leg))
