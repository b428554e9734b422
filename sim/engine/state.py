"""State of all queued and running sequences of one engine: slots, pages, positions, and what is logged of them.

There are no phases: a sequence has `known` tokens and `computed` positions, and a step lets `computed` catch up with
`known`. The methods keep the counters consistent. Decisions are in `sim.engine.scheduler` and `sim.engine.admission`.
"""

from __future__ import annotations

from sim.engine.batch import Batch
from sim.engine.config import EngineConfig
from sim.engine.decoding import Decoders
from sim.engine.queue import Waiting
from sim.log.events import CANCELLED, DEQUEUED, FINISHED, MOVED, RELEASED, EventLog
from sim.memory.pool import PagePool
from sim.policy.base import Policy
from sim.request import NO_LIMIT, Nanoseconds, Page, Sequence


class EngineState:
    """Mutable state of one engine.

    on_demand            pages are taken as positions are computed; otherwise all of them at admission
    waiting              the queue
    running              sequences with a slot, by admission number, in that order
    decoders             those of `running` that compute one token in every step
    catching_up          the other ones of `running` that compute
    finished             committed as ended since the last plan
    filled               prefills whose pages are to enter a cache that takes them late: (sequence, its admission number,
                         positions)
    riding               finished, and part of one step more (evict "after")
    abandoned            running, and given up by their clients since the last plan
    departed             ended, and not yet reported to the driver
    latest_past_prefill  highest admission number that has had a token here; later ones can only be prefilling
    over                 how many running sequences have all their tokens
    computed             positions of all running sequences
    reach                positions that all running sequences may come to hold
    touched              pages with a computed position, where pages are reserved
    admissions           how many sequences have been admitted
    closed_until         the first step whose plan may admit again
    width                positions per row of a contiguous cache
    swapping             positions to be copied to or from the host with the next step
    """

    def __init__(self, policy: Policy, pool: PagePool, config: EngineConfig) -> None:
        self.config = config
        self.pool = pool
        self.order = policy.order
        self.admission = policy.admission
        self.victim = policy.victim
        self.on_demand = not policy.admission.reserves
        self.takes_slots = config.preempt_for_slot or policy.order.preempts
        self.most_active = config.slots if config.max_active is None else min(config.slots, config.max_active)
        self.max_model_len = NO_LIMIT if config.max_model_len is None else config.max_model_len
        self.evict_late = config.evict == "after"
        self.harvest_late = config.harvest == "next"
        self.log = EventLog(config.slots, pool.pages, pool.page_size, self.on_demand, config.depth, pool.use)

        self.waiting = Waiting(policy.order)
        self.decoders = Decoders(pool.page_size)
        self.running: dict[int, Sequence] = {}
        self.catching_up: dict[int, Sequence] = {}
        self.finished: list[Sequence] = []
        self.filled: list[tuple[Sequence, int, int]] = []
        self.riding: list[Sequence] = []
        self.abandoned: list[Sequence] = []
        self.departed: list[Sequence] = []
        self.latest_past_prefill = -1
        self.admissions = self.closed_until = 0
        self.over = self.computed = self.reach = self.touched = self.width = self.swapping = 0

    def reset(self, step: int) -> None:
        """Empty the engine but for its queue, once `step` steps have ended; what is in its memory is lost."""
        self.running, self.catching_up = {}, {}
        self.finished, self.filled, self.riding, self.abandoned = [], [], [], []
        self.over = self.computed = self.reach = self.touched = self.swapping = 0
        self.decoders.go_back(step)
        self.pool.lose_all()

    def check(self) -> None:
        """Check what holds once every request has ended: nothing is left over. Raises AssertionError."""
        assert not self.running, f"{len(self.running)} sequences still run"
        assert not self.waiting.count, f"{self.waiting.count} sequences still wait"
        assert self.over == self.computed == self.reach == self.touched == 0, "something is counted that is not there"
        self.decoders.check()
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
        return self.pool.pages_for(self.admission.positions(seq, seq.known))

    def growth(self, seq: Sequence, tokens: int) -> int:
        """Pages that `tokens` more positions of a running sequence begin."""
        computed = self.decoders.step + seq.base if seq.decoding else seq.computed
        size = self.pool.page_size
        return -(-(computed + tokens) // size) + (-computed // size)

    def fill(self, pages: int) -> None:
        """Take `pages` pages, or count them as touched where they are reserved."""
        if self.on_demand:
            self.pool.take(pages)
        else:
            self.touched += pages

    def give(self, batch: Batch, seq: Sequence, tokens: int) -> None:
        """Have the step compute `tokens` positions of a sequence, in pages of its own."""
        start, size = seq.computed, self.pool.page_size
        self.fill(-(-(start + tokens) // size) + (-start // size))
        batch.work.append((seq, start, tokens))
        batch.budget -= tokens
        seq.behind = start + tokens < seq.known
        if self.pool.remembers:
            self.keep_pages(seq, tokens)

    def keep_pages(self, seq: Sequence, tokens: int) -> None:
        """Enter full pages into the cache from the plan on that fills them, unless a token of theirs is in flight.

        A pool that enters them late gets those that earlier steps have filled.
        """
        in_flight = seq.last_step >= self.log.steps
        filled = seq.computed if self.pool.late else seq.computed + tokens
        self.pool.keep(seq, min(filled, seq.known - in_flight) // self.pool.page_size)

    def keep_filled(self) -> None:
        """Enter the pages of prefills that have ended into a cache that takes them late."""
        filled, self.filled = self.filled, []
        for seq, serial, positions in filled:
            if seq.last_step >= self.log.steps:
                self.filled.append((seq, serial, positions))
            elif self.running.get(serial) is seq:
                self.pool.keep(seq, positions // self.pool.page_size)

    def unwritten(self, seq: Sequence) -> list[Page]:
        """Cached pages of a sequence that only the step being planned fills; none if it decodes."""
        if seq.decoding or not seq.table:
            return []
        in_flight = seq.last_step >= self.log.steps
        return seq.table[min(seq.computed, seq.known - in_flight) // self.pool.page_size :]

    def leave(self, seq: Sequence, positions: int) -> None:
        """Free the slot of a sequence, and its pages, in which it has `positions` positions."""
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

    # ------------------------------------------------------------------ transitions of one sequence

    def stop_decoding(self, seq: Sequence) -> None:
        """Take a sequence out of the decoders: it is preempted, or gets no token in the step being planned."""
        self.decoders.leave(seq)
        self.close_stint(seq)

    def close_stint(self, seq: Sequence) -> None:
        """Log which steps brought a token to a sequence that has just stopped decoding; cache its full pages."""
        if seq.last_step >= seq.joined:
            self.log.stint(seq.index, seq.joined, seq.last_step + 1)
        if self.pool.remembers:
            self.pool.keep(seq, seq.computed // self.pool.page_size)
        if self.order.counts_service:
            self.order.paused(seq, self.decoders.step)

    def dequeue(self, seq: Sequence, now: Nanoseconds) -> None:
        """Remove an ended sequence from the queue."""
        self.waiting.pop(seq)
        self.log.event(now, DEQUEUED, seq.index)
        self.depart(seq)

    def release(self, seq: Sequence, now: Nanoseconds) -> None:
        """Log that a sequence has left its slot; under late harvest its end is found only now."""
        if self.harvest_late:
            self.log_end(seq, now)
        self.log.event(now, RELEASED, seq.index, seq.over)
        self.depart(seq)

    def depart(self, seq: Sequence) -> None:
        """Notify the admission rule, and an order that counts service, that a sequence is gone."""
        self.admission.left(seq)
        if self.order.counts_service:
            self.order.left(seq, self.decoders.step)

    def log_end(self, seq: Sequence, now: Nanoseconds) -> None:
        """Log the end of a request: all its tokens, all that its client waits for, or all of this engine's part."""
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
