"""Continuous batching: decide what each step computes. Pure: `now` is an argument; no clock, no I/O.

    batch = scheduler.plan(now)                  what the next step computes, and how often it may repeat
    scheduler.proceed(batch, steps)              it goes on for so many steps more
    scheduler.commit(batch, now, durations)      its next steps have run

What a step will have computed counts from its plan on, and what it brings comes with its commit
(`sim.engine.state`): so a driver may plan a step while another runs. Knows no policy by name and no cost.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from sim.engine.batch import NO_GROWTH, Batch
from sim.engine.state import Residents
from sim.log.events import (
    ADMITTED,
    BLOCKED,
    CANCELLED,
    DEQUEUED,
    LIMITED,
    NO_BUDGET,
    NO_DEMAND,
    NO_MEMORY,
    PREEMPTED,
    QUEUED,
    RELEASED,
    Kind,
    Reason,
)
from sim.memory.pool import PagePool
from sim.policy.base import Policy
from sim.request import NO_LIMIT, WHOLE, Leg, Nanoseconds, Page, Request, Sequence

LONGEST_RUN = 256
"""Steps planned ahead at most. Only a matter of speed: a longer run is recorded in parts."""


class Scheduler(Residents):
    """One engine: `slots` places in the running batch and a pool of pages, filled by a policy.

    token_budget      most positions one step computes
    chunked           a prompt may be cut to fit the budget; else it waits for a step that takes it whole
    evict             "before" the next forward pass, or "after" it: then a finished sequence buys one step more
    harvest           "step": a token is collected when its step ends; "next" (with evict "after"): at the start
                      of the following one, so that the last token of a sequence is lost
    contiguous        the cache is one rectangle: admissions pay for copying
    depth             steps in flight at once: 2 plans a step while the one before it runs
    max_active        most sequences running at once, if fewer than slots
    admit_every       while anybody runs, at least so many steps lie between two plans that admit somebody
    chunk_limit       most positions one step computes of one sequence, unless it is alone (0: no limit);
                      with chunk_limit_adapts, at least its share of the budget
    queue_limit       most sequences that may wait; who comes then is rejected
    swap              a preempted sequence keeps its computed positions on the host, and both ways are paid for;
                      else it starts over from its tokens
    preempt_for_slot  a more urgent request takes the slot of the victim, not only its pages, if it fits in its place
    max_model_len     longest sequence, prompt and output: an output ends there, and a prompt that leaves no
                      room is rejected (None: no limit)

    Raises ValueError for settings that make no sense.
    """

    closed = False
    """Whether a finished sequence keeps its place until all have ended."""

    def __init__(
        self,
        policy: Policy,
        pool: PagePool,
        *,
        slots: int,
        token_budget: int,
        chunked: bool = True,
        evict: Literal["before", "after"] = "before",
        harvest: Literal["step", "next"] = "step",
        contiguous: bool = False,
        depth: int = 1,
        max_active: int | None = None,
        admit_every: int = 1,
        chunk_limit: int = 0,
        chunk_limit_adapts: bool = False,
        queue_limit: int | None = None,
        swap: bool = False,
        preempt_for_slot: bool = False,
        max_model_len: int | None = None,
    ) -> None:
        counts = {
            "slots": slots,
            "token_budget": token_budget,
            "admit_every": admit_every,
            "max_active": slots if max_active is None else max_active,
            "max_model_len": NO_LIMIT if max_model_len is None else max_model_len,
        }
        for name, count in counts.items():
            if count < 1:
                raise ValueError(f"{name} is {count}; expected at least 1")
        if harvest == "next" and evict != "after":
            raise ValueError("harvest 'next' needs evict 'after'")
        if depth not in (1, 2):
            raise ValueError(f"depth is {depth}; expected 1 or 2")
        if depth == 2 and evict == "after":
            raise ValueError("depth 2 needs evict 'before': it finds a finished sequence late enough")
        if pool.remembers and policy.admission.reserves:
            raise ValueError("a prefix cache needs an admission rule that takes pages as needed")
        if preempt_for_slot and not policy.order.by_urgency:
            raise ValueError("preempt_for_slot needs an order by urgency: the one driven out would be first again")
        if policy.order.preempts and self.closed:
            raise ValueError("static batching needs an order that does not preempt: nobody leaves a batch")
        if pool.remembers and swap:
            raise ValueError("swap needs an engine without a prefix cache: what is on the host is not found")
        super().__init__(policy, pool, slots, depth, evict == "after", harvest == "next")
        self.victim = policy.victim
        self.most_active = min(slots, counts["max_active"])
        self.token_budget = token_budget
        self.admit_every = admit_every
        self.chunked = chunked
        self.chunk_limit = chunk_limit
        self.chunk_limit_adapts = chunk_limit_adapts
        self.contiguous = contiguous
        self.queue_limit = queue_limit
        self.swap = swap
        self.preempt_for_slot = preempt_for_slot
        self.max_model_len = counts["max_model_len"]

        self.riding: list[Sequence] = []  # finished, and in one step more
        self.abandoned: list[Sequence] = []  # running, and their client has given up since the last plan
        self.unsettled = False  # the last arrival or abort could change what runs
        self.complaint = ""  # why the last arrival was turned away, if it was
        self.admissions = 0
        self.closed_until = 0  # the step whose plan may admit again
        self.width = 0  # positions per row of a contiguous cache
        self.swapping = 0  # positions to move with the next step

    def submit(self, request: Request, now: Nanoseconds, leg: Leg = WHOLE) -> Sequence | None:
        """A request arrives, or the part of one: it is queued and returned, or rejected (None) if it can never fit.

        `unsettled` then says whether it could change what runs, so that the plan should be made again at the
        next step boundary.
        """
        index = self.log.add(request)
        seq = Sequence(request, index, self.evict_late, self.max_model_len, leg)
        seq.pool = self.pool
        seq.lingers = self.depth - 1
        self.complaint = self.misfit(seq) or ("" if leg.given else self.refusal(seq, now))
        if self.complaint:
            self.log.reject(now, index, self.complaint)
            self.unsettled = False
            return None
        self.log.event(now, QUEUED, index, leg.redone)
        nobody_waits = not self.waiting.count
        needs = self.needs(seq)
        self.waiting.push(seq, needs, now, self.decoders.step)
        if len(self.running) >= self.most_active:
            self.unsettled = self.takes_slots or (nobody_waits and self.most_active < self.slots)
        else:
            behind = self.order.appends and not nobody_waits and not self.chunk_limit
            self.unsettled = not behind or needs <= self.pool.free
        return seq

    def discard(self, request: Request, now: Nanoseconds) -> None:
        """A request arrives on which its client gave up while it was on its way: it is only entered in the log."""
        index = self.log.add(request)
        for kind, value in ((QUEUED, 0), (CANCELLED, self.log.steps), (DEQUEUED, 0)):
            self.log.event(now, kind, index, value)
        self.log.ended += 1

    def abort(self, seq: Sequence, now: Nanoseconds, kind: Kind) -> None:
        """The client gives up (CANCELLED) or has waited too long (TIMED_OUT), unless the request has ended.

        Slot and pages are free from the next plan on, and what steps bring that have not ended by now is
        nobody's. All steps that have ended must be committed.
        """
        self.unsettled = False
        if seq.ended:
            return
        seq.ended = True
        self.log.event(now, kind, seq.index, self.log.steps)
        self.log.ended += 1
        self.departed.append(seq)
        if seq.serial in self.running:
            self.abandoned.append(seq)
            self.unsettled = True
        else:
            self.dequeue(seq, now)
            self.unsettled = self.takes_slots or len(self.running) < self.slots

    def misfit(self, seq: Sequence) -> str:
        """Why this sequence could not run even alone; empty if it could."""
        if seq.request.prompt >= self.max_model_len:
            return "prompt leaves no room for an output"
        if self.pool.pages_for(seq.most) > self.pool.pages:
            return "needs more pages than exist"
        if not self.chunked and seq.request.prompt > self.token_budget:
            return "prompt exceeds the token budget"
        return ""

    def refusal(self, seq: Sequence, now: Nanoseconds) -> str:
        """Why this sequence, which could run, is turned away for now: too many wait; empty if it is not."""
        if self.queue_limit is not None and self.waiting.count >= self.queue_limit:
            return "queue is full"
        return self.order.refusal(seq, now)

    def plan(self, now: Nanoseconds) -> Batch:
        """What the next step computes; a batch with `tokens` 0 when there is nothing to do.

        A plan may also end empty because the only one it looked at had to leave (`preempted`): plan again.
        """
        if self.finished or self.riding:
            self.evict_finished(now)
        if self.abandoned:
            self.evict_abandoned(now)
        batch = Batch(now, self.token_budget)
        self.continue_running(batch)
        if self.waiting.count and not batch.preempted:
            self.admit_waiting(batch)
        self.measure(batch)
        if batch.tokens:
            self.look_ahead(batch)
            self.advance(batch)
        elif self.pool.remembers:
            self.log.rest(now, self.pool.cached)
        return batch

    def evict_finished(self, now: Nanoseconds) -> None:
        """Finished sequences leave; late eviction finds them one step later."""
        leaving, self.finished = self.finished, []
        if self.evict_late:
            leaving, self.riding = self.riding, leaving
        for seq in leaving:
            self.leave(seq, seq.computed)
            self.log_release(seq, now)

    def evict_abandoned(self, now: Nanoseconds) -> None:
        """Sequences whose client has given up leave."""
        for seq in self.abandoned:
            if seq.decoding:
                self.stop_decoding(seq)
            self.leave(seq, seq.computed)
            self.log.event(now, RELEASED, seq.index, seq.over)
            self.depart(seq)
        self.abandoned = []

    def continue_running(self, batch: Batch) -> None:
        """Running sequences get their tokens: one each, or what is left of a prompt, while the budget lasts."""
        decoders = self.decoders
        pages = decoders.pages_needed[decoders.step % decoders.page_size]
        left = batch.budget - decoders.count
        if self.catching_up or left < 0 or (self.on_demand and pages > self.pool.free):
            self.continue_mixed(batch, pages, left)
            return
        batch.budget = left
        if pages:
            self.fill(pages)

    def continue_mixed(self, batch: Batch, pages: int, left: int) -> None:
        """The same when not all simply decode, or pages or budget do not reach for all."""
        if not self.all_can_be_served(pages, left):
            self.continue_in_order(batch)
            return
        batch.budget = left
        self.fill(pages)
        if self.catching_up:
            limit = self.limit()
            for seq in self.catching_up.values():
                self.give(batch, seq, min(seq.known - seq.computed, limit, batch.budget))

    def limit(self) -> int:
        """Most positions that one sequence may compute in this step."""
        present = len(self.running) + self.waiting.count
        if not self.chunk_limit or present <= 1:
            return NO_LIMIT
        if self.chunk_limit_adapts:
            return max(self.chunk_limit, self.token_budget // present)
        return self.chunk_limit

    def all_can_be_served(self, pages: int, budget: int) -> bool:
        """Whether neither pages nor budget make the order of the running ones matter.

        The decoders need `pages` and leave so much `budget`.
        """
        if budget < 0:
            return False
        if self.catching_up:
            limit = self.limit()
            for serial, seq in self.catching_up.items():
                wanted = min(seq.known - seq.computed, limit)
                tokens = min(wanted, budget)
                if tokens < wanted and serial <= self.latest_past_prefill:
                    return False
                budget -= tokens
                pages += self.growth(seq, tokens)
        return not self.on_demand or pages <= self.pool.free

    def continue_in_order(self, batch: Batch) -> None:
        """The same, one by one in the order of admission: budget or pages do not reach for all."""
        limit = self.limit()
        batch.served = {}
        stopped = False
        for serial, seq in list(self.running.items()):
            if serial not in self.running or (seq.over and not self.evict_late):
                continue
            wanted = 1 if seq.decoding else min(seq.known - seq.computed, limit)
            tokens = 0 if stopped else min(wanted, batch.budget)
            while self.on_demand and not self.pool.can_take(self.growth(seq, tokens)):
                victim = self.victim.choose(self.running, self.decoders.step)
                self.preempt(victim, batch)
                if victim is seq:
                    stopped = True
                    break
            if serial not in self.running:
                continue
            batch.served[serial] = tokens
            if seq.decoding and tokens:
                self.fill(self.growth(seq, tokens))
                batch.budget -= tokens
                continue
            if seq.decoding:
                self.stop_decoding(seq)
            self.give(batch, seq, tokens)
        self.catching_up = {
            serial: seq
            for serial, seq in self.running.items()
            if not seq.decoding and (self.evict_late or not seq.over)
        }

    def preempt(self, victim: Sequence, batch: Batch) -> None:
        """The victim's slot and pages are free again; it starts over or is swapped out, or just leaves if over."""
        batch.preempted = True
        batch.reason = NO_MEMORY
        if victim.decoding:
            tokens = 1 if batch.served is None else batch.served.pop(victim.serial, 0)
            self.stop_decoding(victim)
            batch.budget += tokens
        else:
            tokens = batch.withdraw(victim)
        if self.pool.remembers:
            self.keep_pages(victim, tokens)
        self.leave(victim, victim.computed + tokens)
        if victim.over and self.evict_late:
            self.riding.remove(victim)
            self.log_release(victim, batch.planned)
            return
        step = self.decoders.step
        stay = ((seq.generated(step), seq.request.max_output) for seq in self.running.values())
        self.admission.retracted(stay, step)
        victim.peak = max(victim.peak, victim.computed)
        lost = 0 if victim.over or self.swap else victim.computed
        self.log.event(batch.planned, PREEMPTED, victim.index, lost)
        if self.swap:
            self.swapping += victim.computed
        else:
            victim.computed = 0
        self.waiting.push_back(victim, self.needs(victim), batch.planned, self.decoders.step)

    def admit_waiting(self, batch: Batch) -> None:
        """Waiting sequences enter in the policy's order while there are a slot, budget and memory."""
        limit = self.limit()
        if not self.running:
            self.admission.idle(self.decoders.step)
        elif self.decoders.step < self.closed_until:
            batch.reason = LIMITED
            return
        while self.waiting.count:
            if len(self.running) >= self.most_active:
                if self.takes_slots and self.take_slot(batch, limit):
                    continue
                if self.most_active < self.slots:
                    batch.reason = LIMITED
                return
            if not batch.budget:
                batch.reason = NO_BUDGET
                return
            seq = self.order.head(batch.planned, self.decoders.step)
            if seq is None:
                batch.reason = LIMITED
                return
            obstacle = self.enter(seq, batch, limit)
            if obstacle is not None:
                batch.reason = obstacle
                return

    def enter(self, seq: Sequence, batch: Batch, limit: int, victim: Sequence | None = None) -> Reason | None:
        """Admit the head of the queue, in place of the victim if there is one; or say why neither happens."""
        found: list[Page] = []
        if self.pool.remembers and not seq.computed:
            batch.found = found = self.pool.find(seq)
        start = seq.computed + len(found) * self.pool.page_size
        wanted = min(seq.known - start, limit)
        tokens = min(wanted, batch.budget + (0 if victim is None else self.planned(victim, batch)))
        if not tokens or (tokens < wanted <= self.token_budget and not self.chunked):
            return NO_BUDGET
        seq.behind = start + tokens < seq.known
        if not self.has_memory_for(seq, found, start + tokens, victim, batch):
            batch.refused = True
            return BLOCKED if self.waiting.smallest_need() <= self.pool.free else NO_MEMORY
        batch.found = None
        if victim is not None:
            self.displace(victim, batch)
        self.admit(seq, found, batch)
        self.give(batch, seq, tokens)
        return None

    @property
    def takes_slots(self) -> bool:
        """Whether somebody who waits may drive out somebody who runs."""
        return self.preempt_for_slot or self.order.preempts

    def take_slot(self, batch: Batch, limit: int) -> bool:
        """Whether the head of the queue took the slot of somebody who leaves for it: both happen, or neither."""
        head = self.order.head(batch.planned, self.decoders.step)
        if head is None or head.last_step >= self.log.steps:  # nobody, or driven out with a token in flight
            return False
        victim = self.displaced(head, batch.planned)
        return victim is not None and self.enter(head, batch, limit, victim) is None

    def displaced(self, head: Sequence, now: Nanoseconds) -> Sequence | None:
        """Who may have to leave for the head: the victim, for a more urgent one; or whom the order names."""
        step = self.decoders.step
        if not self.preempt_for_slot:
            return self.order.displaced(head, self.running.values(), now, step)
        victim = self.victim.choose(self.running, step)
        return None if victim.over or head.request.priority >= victim.request.priority else victim

    def displace(self, victim: Sequence, batch: Batch) -> None:
        """The victim leaves for somebody who is admitted in this plan, not for want of pages."""
        preempted, reason = batch.preempted, batch.reason
        self.preempt(victim, batch)
        batch.preempted, batch.reason = preempted, reason

    def planned(self, seq: Sequence, batch: Batch) -> int:
        """Positions of a running sequence that the batch computes."""
        if seq.decoding:
            return 1 if batch.served is None else batch.served.get(seq.serial, 0)
        return sum(tokens for other, _, tokens in batch.work if other is seq)

    def has_memory_for(
        self, seq: Sequence, found: list[Page], computed: int, gone: Sequence | None, batch: Batch
    ) -> bool:
        """The admission rule: its pages, less those it finds with somebody, are free, and the rule allows it.

        `gone` is taken to have left, with its part of the batch.
        """
        needs = self.pool.pages_for(self.admission.positions(seq, computed))
        free, to_come = self.pool.free, self.reach - self.computed
        others: Collection[Sequence] = self.running.values()
        given_back: dict[Page, None] = {}
        if gone is not None:
            others = [other for other in others if other is not gone]
            given_back = {page: None for page in gone.table if page.holders == 1}
            has = self.decoders.computed(gone) if gone.decoding else gone.computed
            to_come -= gone.most - has
            held = self.pool.pages_for(has + self.planned(gone, batch)) if self.on_demand else gone.pages
            free += held - len(gone.table) + len(given_back)
        if found:
            needs -= sum(page.holders > 0 and page not in given_back for page in found)
        if not others:
            return needs <= free
        step = self.decoders.step
        needs += self.admission.spare(self.pool, to_come, step)
        return needs <= free and self.admission.allows(seq, others, self.pool, step)

    def admit(self, seq: Sequence, found: list[Page], batch: Batch) -> None:
        """A waiting sequence gets a slot, the pages found, and under a reserving rule all its pages."""
        assert seq.last_step < self.log.steps, "admitted with a token in flight"
        self.waiting.pop(seq)
        if self.pool.use is not None and not seq.computed:
            if seq.entered < 0:
                self.pool.use.queried += seq.known
            else:
                self.pool.use.requeried += seq.known
        if found:
            self.pool.claim(seq, found)
            seq.computed = len(found) * self.pool.page_size
            self.computed += seq.computed
        elif seq.computed:
            if seq.entered >= 0:
                self.swapping += seq.computed
            self.computed += seq.computed
            self.fill(self.pool.pages_for(seq.computed))
        if not self.on_demand:
            seq.pages = seq.needs
            self.pool.take(seq.pages)
        self.reach += seq.most
        seq.entered = self.decoders.step
        seq.serial = self.admissions
        self.admissions += 1
        self.running[seq.serial] = self.catching_up[seq.serial] = seq
        self.closed_until = self.decoders.step + self.admit_every
        if self.contiguous:
            batch.copied += self.splice(seq)
        self.log.event(batch.planned, ADMITTED, seq.index, len(found) * self.pool.page_size)
        if self.order.counts_service:
            self.order.admitted(seq, self.decoders.step)

    def splice(self, seq: Sequence) -> int:
        """Positions copied to bring a sequence into the rectangle: its prompt, or all when its rows grow."""
        if len(self.running) == 1:
            self.width = 0
        if seq.most <= self.width:
            return seq.known
        self.width = seq.most
        return len(self.running) * self.width

    def needs(self, seq: Sequence) -> int:
        """Pages that a waiting sequence must find, if it finds none of its content."""
        return self.pool.pages_for(self.admission.positions(seq, seq.known))

    def measure(self, batch: Batch) -> None:
        """Enter everything the step computes into its shape and its row."""
        batch.decodes = batch.decode_rows = batch.tokens = self.decoders.count
        batch.context = batch.decoder_context = self.decoders.context
        if self.decoders.watched:
            batch.longest = self.decoders.longest()
        for seq, start, tokens in batch.work:
            batch.count(seq, start, tokens)
        if self.swapping and batch.tokens:
            batch.swapped, self.swapping = self.swapping, 0
        pool = self.pool
        batch.held_rows = self.over
        batch.waiting = self.waiting.count
        batch.live = self.computed + batch.tokens - pool.shared
        batch.held_pages = pool.pages - pool.free
        batch.pages = batch.held_pages if self.on_demand else self.touched
        batch.cached = pool.cached

    def look_ahead(self, batch: Batch) -> None:
        """For how many steps this very batch goes on if nobody comes: to the next finish or page shortage."""
        count = self.decoders.count
        if batch.preempted or batch.tokens != count or not count or (self.over and not self.closed):
            return
        repeat = min(self.decoders.next_finish() - self.decoders.step, LONGEST_RUN)
        if batch.refused:
            steps = self.admission.next_change(self.decoders.step)
            repeat = repeat if steps is None else min(repeat, steps)
        if batch.reason is LIMITED and self.decoders.step < self.closed_until:
            repeat = min(repeat, self.closed_until - self.decoders.step)
        if self.on_demand and repeat > 1:
            spare = self.pool.free
            if batch.reason is BLOCKED:
                spare -= self.waiting.smallest_need()
            if batch.found:
                spare = min(spare, self.pool.takes_until_lost(batch.found))
            repeat = 1 + self.decoders.steps_within(spare, repeat - 1)
        if batch.reason is not NO_DEMAND or (self.takes_slots and self.waiting.count):
            batch.until, steps = self.order.next_change(batch.planned, self.decoders.step)
            if steps is not None:
                repeat = min(repeat, steps)
        if repeat > 1:
            batch.repeat = repeat
            batch.growth = NO_GROWTH + self.decoders.pages_ahead(repeat - 1)
