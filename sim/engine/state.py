"""State of all queued and running sequences of one engine: slots, pages, positions, and what is logged of them.

There are no phases: a sequence has `known` tokens and `computed` positions, and a step lets `computed` catch up with
`known`. The methods keep the counters consistent. Decisions are in `sim.engine.scheduler` and `sim.engine.admission`.
"""

from __future__ import annotations

from sim.engine.batch import Batch
from sim.engine.config import EngineConfig
from sim.engine.counters import Admissions, Leaving, Totals
from sim.engine.decoding import Decoders
from sim.engine.handover import Handover
from sim.engine.queue import Waiting
from sim.log.events import CANCELLED, DEQUEUED, FETCHED, FINISHED, LOST, MOVED, RELEASED, EventLog, Kind
from sim.memory.pool import Found, PagePool
from sim.policy.base import Policy
from sim.request import NO_LIMIT, Nanoseconds
from sim.sequence import Sequence


class EngineState:
    """Mutable state of one engine.

    on_demand    pages are taken as positions are computed; otherwise all of them at admission
    takes_slots  a waiting sequence may take the slot of a running one
    listeners    what the order has registered: notified of the service that sequences receive
    waiting      the queue
    running      sequences with a slot, by admission number, in that order
    decoders     those of `running` that compute one token in every step
    catching_up  the other ones of `running` that compute
    leaving      sequences that have ended
    totals       sums over `running`
    admissions   what admissions leave behind
    handover     sequences whose KV goes to another engine, or is to come from one
    """

    def __init__(self, policy: Policy, pool: PagePool, config: EngineConfig) -> None:
        self.config = config
        self.pool = pool
        self.policy = policy
        self.on_demand = not policy.admission.reserves
        self.takes_slots = config.preempt_for_slot or policy.order.preempts
        use = pool.use if pool.remembers else None
        self.log = EventLog(config.slots, pool.pages, pool.page_size, self.on_demand, config.depth, use)
        self.listeners = policy.order.listeners
        self.waiting = Waiting(policy.order)
        self.decoders = Decoders(pool.page_size)
        self.running: dict[int, Sequence] = {}
        self.catching_up: dict[int, Sequence] = {}
        self.leaving = Leaving()
        self.totals = Totals()
        self.admissions = Admissions()
        self.handover = Handover()

    def reset(self, step: int) -> None:
        """Empty the engine but for its queue, once `step` steps have ended; what is in its memory is lost."""
        self.running, self.catching_up = {}, {}
        self.admissions.filled = []
        self.admissions.let_go()
        self.leaving.reset()
        self.totals = Totals()
        self.handover.lose_all()
        self.decoders.go_back(step)
        self.pool.lose_all()

    def check(self) -> None:
        """Check what holds once every request has ended: nothing is left over. Raises AssertionError."""
        assert not self.running, f"{len(self.running)} sequences still run"
        assert not self.waiting.count, f"{self.waiting.count} sequences still wait"
        totals = self.totals
        left = totals.over, totals.computed, totals.reach, totals.touched
        assert not any(left), "something is counted that is not there"
        self.decoders.check()
        self.handover.check()
        self.pool.check()

    def chunk_limit(self) -> int:
        """Most positions that one sequence may compute in this step."""
        config = self.config
        present = len(self.running) + self.waiting.count
        if not config.chunk_limit or present <= 1:
            return NO_LIMIT
        if config.chunk_limit_adapts:
            return max(config.chunk_limit, config.token_budget // present)
        return config.chunk_limit

    # ------------------------------------------------------------------ pages

    def needs(self, seq: Sequence) -> int:
        """Pages that a waiting sequence needs for admission if none of its content is cached."""
        return self.pool.pages_for(self.policy.admission.positions(seq, seq.known))

    def growth(self, seq: Sequence, tokens: int) -> int:
        """Pages that `tokens` more positions of a running sequence begin."""
        computed = seq.positions(self.decoders.step)
        size = self.pool.page_size
        return -(-(computed + tokens) // size) + (-computed // size)

    def covered(self, seq: Sequence, positions: int) -> int:
        """Positions for which a running sequence holds pages when it has computed so many."""
        return positions

    def fill(self, pages: int) -> None:
        """Take `pages` pages, or count them as touched where they are reserved."""
        if self.on_demand:
            self.pool.take(pages)
        else:
            self.totals.touched += pages

    def give(self, batch: Batch, seq: Sequence, tokens: int) -> None:
        """Have the step compute `tokens` positions of a sequence, in pages of its own."""
        start = seq.computed
        self.fill(self.growth(seq, tokens))
        batch.add(seq, start, tokens)
        seq.behind = start + tokens < seq.known
        if self.pool.remembers:
            self.keep_pages(seq, tokens)

    def expect(self, seq: Sequence, end: int) -> None:
        """The step being planned would compute the positions of a waiting sequence up to `end`."""
        seq.behind = end < seq.known

    def keep_pages(self, seq: Sequence, tokens: int) -> None:
        """Enter full pages into the cache from the plan on that fills them, unless a token of theirs is in flight.

        A pool that enters them late gets those that earlier steps have filled.
        """
        in_flight = seq.last_step >= self.log.steps
        filled = seq.computed if self.pool.late else seq.computed + tokens
        self.pool.keep(seq, min(filled, seq.known - in_flight) // self.pool.page_size)

    def keep_filled(self) -> None:
        """Enter the pages of prefills that have ended into a cache that takes them late."""
        filled, self.admissions.filled = self.admissions.filled, []
        for seq, serial, positions in filled:
            if seq.last_step >= self.log.steps:
                self.admissions.filled.append((seq, serial, positions))
            elif self.running.get(serial) is seq:
                self.pool.keep(seq, positions // self.pool.page_size)

    def unwritten(self, seq: Sequence) -> int:
        """How many cached pages of a sequence only the step being planned fills; 0 if it decodes."""
        kept = self.pool.kept(seq)
        if seq.decoding or not kept:
            return 0
        in_flight = seq.last_step >= self.log.steps
        return max(0, kept - min(seq.computed, seq.known - in_flight) // self.pool.page_size)

    # ------------------------------------------------------------------ slots

    def enter(self, seq: Sequence, serial: int, found: Found, needs: int) -> None:
        """Give a sequence a slot, and what needs no computing: pages found, positions on the host or sent along.

        needs  pages that it takes now under a rule that reserves them
        """
        pool, computed, step = self.pool, seq.computed, self.decoders.step
        if pool.remembers and not computed:
            pool.use.look_up(seq.known, again=seq.serial >= 0)
        if found:
            pool.claim(seq, found)
        if computed:
            if seq.serial >= 0 and seq.index not in self.handover.remote:
                self.totals.swap(computed)
            self.fill(pool.pages_for(computed) - len(found))
        else:
            computed = len(found) * pool.page_size
        if not self.on_demand:
            seq.pages.reserve(needs)
            pool.take(needs - len(found))
            self.totals.touched += len(found)
        seq.enter(serial, step, computed)
        self.totals.computed += computed
        self.totals.reach += seq.target.most
        self.running[serial] = self.catching_up[serial] = seq

    def leave(self, seq: Sequence, positions: int) -> None:
        """Free the slot of a sequence, and its pages, in which it has `positions` positions."""
        totals, step = self.totals, self.decoders.step
        if seq.outcome is MOVED and seq.target.leg.kept:
            self.handover.keep(seq)
        else:
            self.free(seq, positions)
        if seq.entered < step:
            self.log.stay(seq.index, seq.entered, step)
        totals.computed -= seq.computed
        totals.reach -= seq.target.most
        totals.over -= seq.over
        del self.running[seq.serial]
        self.catching_up.pop(seq.serial, None)

    def free(self, seq: Sequence, positions: int) -> None:
        """Free the pages of a sequence, in which it has `positions` positions."""
        pages = self.pool.pages_for(self.covered(seq, positions))
        if self.on_demand:
            self.pool.give_back(seq, pages)
        else:
            self.totals.touched -= pages
            self.pool.give_back(seq, seq.pages.reserved)

    def hand_over(self, now: Nanoseconds) -> None:
        """Free the pages that have been copied, and let those compute whose KV has come."""
        for seq in self.handover.freed():
            self.free(seq, seq.computed)
        arrived = self.handover.arrived()
        for seq in arrived:
            self.log.event(now, FETCHED, seq.index, self.decoders.step)
        if arrived:
            self.sort_out()

    def sort_out(self) -> None:
        """Find those of the running sequences anew that compute and do not decode, in order of admission."""
        late, away = self.config.evict_late, self.handover.away
        self.catching_up = {
            serial: seq
            for serial, seq in self.running.items()
            if not seq.decoding and (late or not seq.over) and seq.index not in away
        }

    def advance(self, tokens: int, steps: int) -> bool:
        """Count `steps` planned steps of `tokens` positions each; whether a decoder may have reached its goal."""
        self.totals.computed += tokens * steps
        for listener in self.listeners:
            listener.processed(tokens * steps)
        return self.decoders.advance(steps)

    # ------------------------------------------------------------------ transitions of one sequence

    def stop_decoding(self, seq: Sequence) -> None:
        """Take a sequence out of the decoders: it is preempted, or gets no token in the step being planned."""
        self.decoders.leave(seq)
        self.close_stint(seq)

    def close(self, seq: Sequence) -> None:
        """Nothing is left to schedule for a running sequence."""
        self.totals.over += not seq.over
        seq.over = True

    def reopen(self, seq: Sequence) -> None:
        """The last token of a sequence that has not ended is to be scheduled again, after a failure."""
        seq.over = False

    def close_stint(self, seq: Sequence) -> None:
        """Log which steps brought a token to a sequence that has just stopped decoding; cache its full pages."""
        joined, latest = seq.joined, seq.last_step
        if latest >= joined:
            self.log.stint(seq.index, joined, latest + 1)
        if self.pool.remembers:
            self.pool.keep(seq, seq.computed // self.pool.page_size)
        for listener in self.listeners:
            listener.paused(seq, self.decoders.step)

    def dequeue(self, seq: Sequence, now: Nanoseconds) -> None:
        """Remove an ended sequence from the queue."""
        self.waiting.pop(seq)
        self.log.event(now, DEQUEUED, seq.index)
        self.depart(seq)

    def release(self, seq: Sequence, now: Nanoseconds) -> None:
        """Log that a sequence has left its slot; under late harvest its end is found only now."""
        if self.config.harvest_late:
            self.log_end(seq, now)
        self.log.event(now, RELEASED, seq.index, seq.over)
        self.depart(seq)

    def depart(self, seq: Sequence) -> None:
        """Notify the admission rule and the listeners that a sequence is gone."""
        self.policy.admission.left(seq)
        for listener in self.listeners:
            listener.left(seq, self.decoders.step)

    # ------------------------------------------------------------------ ends

    def lose_token(self, seq: Sequence, now: Nanoseconds) -> None:
        """The last token of a sequence is there, and is never collected (late harvest)."""
        seq.outcome = LOST
        self.log.event(now, LOST, seq.index, self.log.steps - 1)

    def log_end(self, seq: Sequence, now: Nanoseconds) -> None:
        """Log the end of a request: all its tokens, all that its client waits for, or all of this engine's part."""
        target = seq.target
        if target.leaves:
            self.end(seq, now, MOVED)
        elif target.cut_short:
            self.end(seq, now, CANCELLED, self.log.steps)
        else:
            delivered = target.goal + 1 - seq.request.prompt - target.leg.given - self.config.harvest_late
            self.end(seq, now, FINISHED, delivered)
        self.leaving.departed.append(seq)

    def end(self, seq: Sequence, now: Nanoseconds, outcome: Kind, value: int = 0) -> None:
        """A request ends."""
        seq.outcome = outcome
        self.log.end(now, outcome, seq.index, value)
