"""The sequences on one engine: what they hold, how far they have come, and what is written of them.

There are no phases: a sequence has `known` tokens and `computed` positions, and a step lets one catch up with the
other. What a step will have computed counts from its plan on; what it brings, tokens and ends, comes with its
commit. Decides nothing: `sim.engine.scheduler` does.
"""

from __future__ import annotations

from array import array

from sim.engine.batch import NO_GROWTH, Batch
from sim.engine.decoding import Decoders
from sim.engine.queue import Waiting
from sim.log.events import CANCELLED, DEQUEUED, FINISHED, FIRST_TOKEN, LOST, MOVED, RELEASED, RESUMED, EventLog
from sim.memory.pool import PagePool
from sim.policy.base import Policy
from sim.request import Nanoseconds, Sequence


class Residents:
    """Who waits and who runs, in which slots and pages.

    slots, depth, evict_late, harvest_late  as the scheduler's settings say
    """

    def __init__(
        self, policy: Policy, pool: PagePool, slots: int, depth: int, evict_late: bool, harvest_late: bool
    ) -> None:
        self.admission = policy.admission
        self.on_demand = not policy.admission.reserves
        self.pool = pool
        self.slots = slots
        self.depth = depth
        self.evict_late = evict_late
        self.harvest_late = harvest_late
        self.log = EventLog(slots, pool.pages, pool.page_size, self.on_demand, depth, pool.use)

        self.order = policy.order
        self.waiting = Waiting(policy.order)
        self.decoders = Decoders(pool.page_size)
        self.running: dict[int, Sequence] = {}  # by order of admission
        self.catching_up: dict[int, Sequence] = {}  # of these, the ones that compute, but do not simply decode
        self.finished: list[Sequence] = []  # committed since the last plan
        self.departed: list[Sequence] = []  # ended, and not yet told to whoever sent them; the driver empties it
        self.latest_past_prefill = -1  # admission number; who was admitted later can only be prefilling
        self.over = 0  # running sequences that have all their tokens
        self.computed = 0  # positions of all running
        self.reach = 0  # positions that all running may come to hold
        self.touched = 0  # pages with a computed position, under a rule that reserves

    def proceed(self, batch: Batch, steps: int) -> None:
        """The batch goes on for so many steps more, as far as `repeat` allows."""
        self.fill(sum(batch.growth[batch.steps : batch.steps + steps]))
        batch.steps += steps
        self.decoders.advance(steps)
        self.computed += self.decoders.count * steps
        if self.decoders.some_due():
            self.end_due(batch)

    def commit(self, batch: Batch, now: Nanoseconds, durations: array[Nanoseconds] | None = None) -> None:
        """The next `len(durations)` steps of the batch have run, the last of them ending now (None: one step).

        Steps the batch had not been told to proceed for are taken as such. With the last planned step come
        the tokens of the sequences that caught up, and the ends.
        """
        if durations is None:
            durations = array("q", [now - batch.start])
        steps = len(durations)
        if batch.done + steps > batch.steps:
            self.proceed(batch, batch.done + steps - batch.steps)
        self.record(batch, durations)
        batch.start = now
        if batch.done == batch.steps and (batch.yields or batch.ends):
            self.harvest(batch, now)

    def assignments(self, batch: Batch) -> list[tuple[Sequence, int, int]]:
        """(sequence, start, tokens) of everyone in a batch that has just been planned, in order of admission."""
        work = {seq.serial: (start, tokens) for seq, start, tokens in batch.work}
        ending = {seq.serial for seq in batch.ends}
        everyone = []
        for serial, seq in self.running.items():
            if serial in work:
                start, tokens = work[serial]
                if tokens:
                    everyone.append((seq, start, tokens))
            elif seq.decoding:
                everyone.append((seq, self.decoders.computed(seq) - 1, 1))
            elif serial in ending:
                everyone.append((seq, seq.computed - 1, 1))
        return everyone

    def check(self) -> None:
        """Nothing vanished: what holds once every request has ended. Raises AssertionError."""
        assert not self.running, f"{len(self.running)} sequences still run"
        assert not self.waiting.count, f"{self.waiting.count} sequences still wait"
        assert self.over == self.computed == self.reach == self.touched == 0, "something is counted that is not there"
        self.decoders.check()
        self.pool.check()

    # ------------------------------------------------------------------ what a planned step will have computed

    def advance(self, batch: Batch) -> None:
        """What the step will have computed counts from here on."""
        decoders = self.decoders
        decoders.advance(1)
        self.computed += batch.tokens
        for seq, _, tokens in batch.work:
            seq.computed += tokens
            if tokens and seq.computed == seq.known and not seq.over:
                self.catch_up(seq, batch)
        if decoders.some_due():
            self.end_due(batch)

    def catch_up(self, seq: Sequence, batch: Batch) -> None:
        """The step brings the sequence a token: it decodes from here on, or has all its tokens."""
        del self.catching_up[seq.serial]
        batch.yields.append((seq, seq.last_step))
        seq.joined = self.decoders.step
        seq.last_step = seq.joined - 1
        seq.known += 1
        self.latest_past_prefill = max(self.latest_past_prefill, seq.serial)
        if self.order.counts_service:
            self.order.token(seq, self.decoders.step)
        if seq.computed == seq.goal:
            self.end(seq, batch)
            return
        self.decoders.join(seq)
        if self.order.counts_service:
            self.order.decoding(seq, self.decoders.step)

    def end_due(self, batch: Batch) -> None:
        """Decoders whose last token the last planned step brings stop."""
        for seq in self.decoders.due():
            self.note_stint(seq)
            self.end(seq, batch)

    def end(self, seq: Sequence, batch: Batch) -> None:
        """Nothing is left to schedule for a sequence; its end comes with the commit."""
        seq.over = True
        self.over += 1
        batch.ends.append(seq)
        if self.evict_late:
            self.catching_up[seq.serial] = seq

    def stop_decoding(self, seq: Sequence) -> None:
        """A decoder is preempted, or gets no token in the step being planned."""
        self.decoders.leave(seq)
        self.note_stint(seq)

    def note_stint(self, seq: Sequence) -> None:
        """Write which steps brought a token to a sequence that has just stopped decoding; its pages are kept."""
        if seq.last_step >= seq.joined:
            self.log.stint(seq.index, seq.joined, seq.last_step + 1)
        if self.pool.remembers:
            self.pool.keep(seq, seq.computed // self.pool.page_size)
        if self.order.counts_service:
            self.order.paused(seq, self.decoders.step)

    # ------------------------------------------------------------------ what its commit brings

    def record(self, batch: Batch, durations: array[Nanoseconds]) -> None:
        """Write what has run into the log."""
        steps = len(durations)
        for seq, start, tokens in batch.work:
            if tokens:
                self.log.chunk(seq.index, start, tokens)
        growth = batch.growth
        if steps < len(growth):
            growth = NO_GROWTH if steps == 1 else NO_GROWTH + growth[batch.done + 1 : batch.done + steps]
        self.log.run(batch.row(steps), durations, growth)
        batch.done += steps
        if batch.done < batch.steps:
            batch.pass_over(steps, self.on_demand)

    def harvest(self, batch: Batch, now: Nanoseconds) -> None:
        """The last planned step has brought its tokens and its ends."""
        for seq, before in batch.yields:
            if seq.ended or (self.harvest_late and seq.over):
                continue
            if before < 0:
                self.log.event(now, FIRST_TOKEN, seq.index)
            else:
                self.log.event(now, RESUMED, seq.index, before)
        batch.ends.sort(key=by_admission)
        for seq in batch.ends:
            self.finish(seq, now)

    def finish(self, seq: Sequence, now: Nanoseconds) -> None:
        """The last token is there; the next plan, or the one after, evicts the sequence."""
        if seq.ended:
            return
        seq.ended = True
        if self.harvest_late:
            self.log.event(now, LOST, seq.index, self.log.steps - 1)
        else:
            self.log_finish(seq, now)
        if seq.serial in self.running:
            self.finished.append(seq)
        else:  # preempted while its last token was in flight
            self.dequeue(seq, now)

    def dequeue(self, seq: Sequence, now: Nanoseconds) -> None:
        """A sequence need not wait any more."""
        self.waiting.pop(seq)
        self.log.event(now, DEQUEUED, seq.index)
        self.depart(seq)

    def depart(self, seq: Sequence) -> None:
        """Tell the admission rule, and an order that counts service, that a sequence is gone."""
        self.admission.left(seq)
        if self.order.counts_service:
            self.order.left(seq, self.decoders.step)

    def log_finish(self, seq: Sequence, now: Nanoseconds) -> None:
        """Write the end of a request: all its tokens are there, all that its client waits for, or all from here."""
        if seq.leaves:
            self.log.event(now, MOVED, seq.index)
        elif seq.cut_short:
            self.log.event(now, CANCELLED, seq.index, self.log.steps)
        else:
            seq.finished = True
            delivered = seq.goal + 1 - seq.request.prompt - seq.given - self.harvest_late
            self.log.event(now, FINISHED, seq.index, delivered)
        self.log.ended += 1
        self.departed.append(seq)

    def log_release(self, seq: Sequence, now: Nanoseconds) -> None:
        """Write that a sequence has left; under late harvest only now is it known to have ended."""
        if self.harvest_late:
            self.log_finish(seq, now)
        self.log.event(now, RELEASED, seq.index, seq.over)
        self.depart(seq)

    # ------------------------------------------------------------------ pages

    def growth(self, seq: Sequence, tokens: int) -> int:
        """Pages that so many more positions of a running sequence begin."""
        computed = self.decoders.step + seq.base if seq.decoding else seq.computed
        size = self.pool.page_size
        return -(-(computed + tokens) // size) + (-computed // size)

    def give(self, batch: Batch, seq: Sequence, tokens: int) -> None:
        """The step computes `tokens` positions of a sequence, in pages of its own; full ones can be found."""
        start, size = seq.computed, self.pool.page_size
        self.fill(-(-(start + tokens) // size) + (-start // size))
        batch.work.append((seq, start, tokens))
        batch.budget -= tokens
        seq.behind = start + tokens < seq.known
        if self.pool.remembers:
            self.keep_pages(seq, tokens)

    def keep_pages(self, seq: Sequence, tokens: int) -> None:
        """Full pages can be found from the plan on that fills them, unless a token of theirs is in flight."""
        in_flight = seq.last_step >= self.log.steps
        self.pool.keep(seq, min(seq.computed + tokens, seq.known - in_flight) // self.pool.page_size)

    def fill(self, pages: int) -> None:
        """So many pages get their first position."""
        if self.on_demand:
            self.pool.take(pages)
        else:
            self.touched += pages

    def leave(self, seq: Sequence, positions: int) -> None:
        """A sequence gives back its slot, and its pages with so many positions."""
        pages = self.pool.pages_for(positions)
        if self.on_demand:
            self.pool.give_back(seq, pages)
        else:
            self.touched -= pages
            self.pool.give_back(seq, seq.pages)
        if seq.entered < self.decoders.step:
            self.log.stay(seq.index, seq.entered, self.decoders.step)
        self.computed -= seq.computed
        self.reach -= seq.most
        self.over -= seq.over
        del self.running[seq.serial]
        self.catching_up.pop(seq.serial, None)


def by_admission(seq: Sequence) -> int:
    """The order in which sequences were admitted."""
    return seq.serial
