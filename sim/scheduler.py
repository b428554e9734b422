"""Continuous batching: decide what each step computes. Pure: `now` is an argument; no clock, no I/O.

    batch = scheduler.plan(now)                  what the next step computes, and how often it may repeat
    scheduler.commit(batch, now, durations)      it has run, once or several times

Decoding sequences advance together, so their progress is implicit: one step counter, and per sequence the
difference to it. The next to finish is the top of a heap keyed by finishing step, the pages a step needs
are counted per phase (position modulo page size), and the total context grows by the batch. A decode step
costs O(1), an event O(log n). Knows no policy by name and no cost.
"""

from __future__ import annotations

from array import array
from collections import Counter
from heapq import heappop, heappush
from typing import Literal

from sim.batch import NO_GROWTH, Batch
from sim.events import EventLog, Kind, Reason
from sim.memory import PagePool
from sim.policy import Policy
from sim.request import Nanoseconds, Request, Sequence

LONGEST_RUN = 256
"""Steps planned ahead at most. Only a matter of speed: a longer run is recorded in parts."""


class Scheduler:
    """One engine: `slots` places in the running batch and a pool of pages, filled by a policy.

    token_budget  most positions one step computes
    chunked       a prompt may be cut to fit the budget; else it waits for a step that takes it whole
    evict         "before" the next forward pass, or "after" it: then a finished sequence buys one step more
    harvest       "step": a token is collected when its step ends; "next" (with evict "after"): at the start
                  of the following one, so that the last token of a sequence is lost
    contiguous    the cache is one rectangle: admissions pay for copying

    Raises ValueError for settings that make no sense.
    """

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
    ) -> None:
        if slots < 1:
            raise ValueError(f"slots is {slots}; expected at least 1")
        if token_budget < 1:
            raise ValueError(f"token_budget is {token_budget}; expected at least 1")
        if harvest == "next" and evict != "after":
            raise ValueError("harvest 'next' needs evict 'after'")
        self.order = policy.order
        self.admission = policy.admission
        self.victim = policy.victim
        self.on_demand = not policy.admission.reserves
        self.pool = pool
        self.slots = slots
        self.token_budget = token_budget
        self.chunked = chunked
        self.evict_late = evict == "after"
        self.harvest_late = harvest == "next"
        self.contiguous = contiguous
        self.log = EventLog(slots, pool.pages, pool.page_size, self.on_demand)

        self.step = 0
        self.last_commit: Nanoseconds = 0
        self.admissions = 0
        self.running: dict[int, Sequence] = {}  # by order of admission
        self.catching_up: dict[int, Sequence] = {}  # of these, the ones that do not simply decode
        self.finished: list[Sequence] = []  # since the last plan
        self.riding: list[Sequence] = []  # finished, and in one step more
        self.latest_past_prefill = -1  # admission number; who was admitted later can only be prefilling
        self.finishing: list[tuple[int, int, Sequence]] = []  # heap by finishing step
        self.decoders = 0
        self.context = 0  # computed positions of all decoders
        self.live = 0  # computed positions of all running
        self.filled = 0  # pages with a live position
        self.page_demand = array("q", [0]) * pool.page_size  # decoders that need a page, by step modulo page size
        self.waiting_needs: Counter[int] = Counter()  # pages that those who wait need
        self.smallest_need: int | None = None
        self.width = 0  # positions per row of a contiguous cache

    # ------------------------------------------------------------------ the outside

    def submit(self, request: Request, now: Nanoseconds) -> bool:
        """A request arrives: it is queued, or rejected if it can never fit.

        Returns whether it could change the batch that is running, so that the plan should be made again
        at the next step boundary.
        """
        log = self.log
        index = log.add(request)
        seq = Sequence(request, index, overrun=self.evict_late)
        complaint = self.never_fits(seq)
        if complaint:
            log.reject(now, index, complaint)
            return False
        log.event(now, Kind.QUEUED, index)
        nobody_waits = not len(self.order)
        self.order.push(seq, now, self.step)
        need = self.expect(seq)
        if len(self.running) >= self.slots:
            return False
        return nobody_waits or not self.order.appends or need <= self.pool.free

    def never_fits(self, seq: Sequence) -> str:
        """Why this sequence could not run even alone; empty if it could."""
        if self.pool.pages_for(seq.most) > self.pool.pages:
            return "needs more pages than exist"
        if not self.chunked and seq.request.prompt > self.token_budget:
            return "prompt exceeds the token budget"
        return ""

    def plan(self, now: Nanoseconds) -> Batch:
        """What the next step computes; an empty batch (`tokens` 0) when there is nothing to do."""
        self.evict_finished(now)
        batch = Batch(now, self.token_budget)
        self.continue_running(batch)
        if not batch.preempted:
            self.admit_waiting(batch)
        self.measure(batch)
        self.look_ahead(batch)
        return batch

    def commit(self, batch: Batch, now: Nanoseconds, durations: array[Nanoseconds] | None = None) -> None:
        """The batch has run `len(durations)` times, the last of them ending now (None: once)."""
        if durations is None:
            durations = array("q", [now - batch.start])
        self.record(batch, durations)
        self.advance_decoders(len(durations))
        for seq, tokens in batch.work:
            self.advance(seq, tokens, now)
        self.finish_due(now)
        self.last_commit = now

    def commit_part(self, batch: Batch, now: Nanoseconds, durations: array[Nanoseconds]) -> None:
        """The first steps of a run have ended, the last of them now; the same batch goes on."""
        self.commit(batch, now, durations)
        batch.start = now
        batch.growth = batch.growth[len(durations) :]
        self.fill(batch.growth[0])
        batch.growth[0] = 0

    def check(self) -> None:
        """Nothing vanished: what holds once every request has ended. Raises AssertionError."""
        assert not self.running, f"{len(self.running)} sequences still run"
        assert not len(self.order), f"{len(self.order)} sequences still wait"
        assert not self.decoders, f"{self.decoders} decoders are counted that are not there"
        assert self.context == self.live == self.filled == 0, "positions are counted that are not there"
        assert not any(self.page_demand), "a page is expected that nobody needs"
        self.pool.check()

    # ------------------------------------------------------------------ plan

    def evict_finished(self, now: Nanoseconds) -> None:
        """Finished sequences leave; late eviction finds them one step later."""
        if not self.evict_late:
            leaving, self.finished = self.finished, []
        else:
            leaving, self.riding, self.finished = self.riding, self.finished, []
        for seq in leaving:
            self.release(seq, now)

    def continue_running(self, batch: Batch) -> None:
        """Running sequences get their tokens: one each, or what is left of a prompt, while the budget lasts."""
        if not self.all_can_be_served(batch.budget):
            self.continue_in_order(batch)
            return
        batch.budget -= self.decoders
        self.fill(self.page_demand[self.step % self.pool.page_size])
        for seq in self.catching_up.values():
            self.give(batch, seq, min(seq.known - seq.computed, batch.budget))

    def all_can_be_served(self, budget: int) -> bool:
        """Whether neither pages nor the budget make the order of the running ones matter."""
        pages = self.page_demand[self.step % self.pool.page_size]
        budget -= self.decoders
        if budget < 0:
            return False
        for serial, seq in self.catching_up.items():
            wanted = seq.known - seq.computed
            tokens = min(wanted, budget)
            if tokens < wanted and serial < self.latest_past_prefill:
                return False
            budget -= tokens
            pages += self.growth(seq, tokens)
        return not self.on_demand or self.pool.can_take(pages)

    def continue_in_order(self, batch: Batch) -> None:
        """The same, one by one in the order of admission: budget or pages do not reach for all."""
        served: dict[int, int] = {}
        stopped = False
        for serial, seq in list(self.running.items()):
            if serial not in self.running:
                continue
            tokens = min(1 if seq.decoding else seq.known - seq.computed, 0 if stopped else batch.budget)
            while self.on_demand and not self.pool.can_take(self.growth(seq, tokens)):
                victim = self.victim.choose(self.running)
                self.preempt(victim, batch, served)
                if victim is seq:
                    stopped = True
                    break
            if serial not in self.running:
                continue
            served[serial] = tokens
            if not seq.decoding:
                self.give(batch, seq, tokens)
            elif tokens:
                self.fill(self.growth(seq, tokens))
                batch.budget -= tokens
            else:
                self.pause(seq, batch.start)
                self.give(batch, seq, 0)
        self.catching_up = {serial: seq for serial, seq in self.running.items() if not seq.decoding}

    def preempt(self, victim: Sequence, batch: Batch, served: dict[int, int]) -> None:
        """The victim's pages are free again, and it starts over from its tokens; a finished one just leaves."""
        batch.preempted = True
        batch.reason = Reason.NO_MEMORY
        tokens = served.pop(victim.serial, 0)
        if victim.decoding:
            victim.last_token = self.last_commit
            self.stop_decoding(victim)
            batch.budget += tokens
        else:
            batch.withdraw(victim)
        self.leave(victim, victim.computed + tokens)
        if victim.over:
            self.riding.remove(victim)
            self.log_release(victim, batch.start)
            return
        self.log.event(batch.start, Kind.PREEMPTED, victim.index, victim.computed)
        victim.computed = 0
        self.order.push_back(victim, batch.start, self.step)
        self.expect(victim)

    def admit_waiting(self, batch: Batch) -> None:
        """Waiting sequences enter in the policy's order while there are a slot, budget and memory."""
        while len(self.order) and len(self.running) < self.slots:
            if not batch.budget:
                batch.reason = Reason.NO_BUDGET
                return
            seq = self.order.head(batch.start, self.step)
            if seq is None:
                batch.reason = Reason.LIMITED
                return
            tokens = min(seq.known, batch.budget)
            if tokens < seq.known <= self.token_budget and not self.chunked:
                batch.reason = Reason.NO_BUDGET
                return
            if not self.pool.can_take(seq.needs):
                fits_another = self.smallest_waiting() <= self.pool.free
                batch.reason = Reason.BLOCKED if fits_another else Reason.NO_MEMORY
                return
            self.admit(seq, batch)
            self.give(batch, seq, tokens)

    def admit(self, seq: Sequence, batch: Batch) -> None:
        """A waiting sequence gets a slot, and under a reserving rule all its pages."""
        self.order.pop(seq)
        self.waiting_needs[seq.needs] -= 1
        if not self.on_demand:
            seq.pages = seq.needs
            self.pool.take(seq.pages)
        seq.serial = self.admissions
        self.admissions += 1
        self.running[seq.serial] = self.catching_up[seq.serial] = seq
        if self.contiguous:
            batch.copied += self.splice(seq)
        self.log.event(batch.start, Kind.ADMITTED, seq.index)
        if self.order.counts_service:
            self.order.admitted(seq, self.step)

    def splice(self, seq: Sequence) -> int:
        """Positions copied to bring a sequence into the rectangle: its prompt, or all when its rows grow."""
        if len(self.running) == 1:
            self.width = 0
        if seq.most <= self.width:
            return seq.known
        self.width = seq.most
        return len(self.running) * self.width

    def measure(self, batch: Batch) -> None:
        """Enter everything the step computes into its shape and its row."""
        batch.count_decoders(self.decoders, self.context)
        for seq, tokens in batch.work:
            batch.count(seq, tokens)
        batch.pages = self.filled

    def look_ahead(self, batch: Batch) -> None:
        """For how many steps this very batch goes on if nobody comes: to the next finish or page shortage."""
        if batch.preempted or batch.tokens != self.decoders or not self.decoders:
            return
        repeat = min(self.next_finish() - self.step, LONGEST_RUN)
        if self.on_demand and repeat > 1:
            spare = self.pool.free
            if batch.reason is Reason.BLOCKED:
                spare -= self.smallest_waiting()
            repeat = 1 + self.steps_within(spare, repeat - 1)
        if batch.reason is not Reason.NO_DEMAND:
            batch.until, steps = self.order.next_change(batch.start, self.step)
            if steps is not None:
                repeat = min(repeat, steps)
        batch.repeat = repeat
        if repeat > 1:
            batch.growth = NO_GROWTH + self.demand_ahead(repeat - 1)

    def steps_within(self, pages: int, most: int) -> int:
        """How many further steps of the decoders so many pages allow, up to `most`."""
        size = self.pool.page_size
        if self.decoders * (most // size + 1) <= pages:
            return most
        cycles, pages = divmod(pages, self.decoders)
        steps = cycles * size
        for demand in self.demand_ahead(size):
            pages -= demand
            if pages < 0:
                break
            steps += 1
        return min(steps, most)

    def demand_ahead(self, steps: int) -> array[int]:
        """Pages that the decoders need in each of the steps after the planned one."""
        size = self.pool.page_size
        at = (self.step + 1) % size
        if at + steps <= size:
            return self.page_demand[at : at + steps]
        cycle = self.page_demand[at:] + self.page_demand[:at]
        return (cycle * (steps // size + 1))[:steps]

    # ------------------------------------------------------------------ commit

    def record(self, batch: Batch, durations: array[Nanoseconds]) -> None:
        """Write what has run into the log."""
        steps = len(durations)
        growth = batch.growth if steps == len(batch.growth) else batch.growth[:steps]
        for seq, tokens in batch.work:
            if tokens:
                self.log.chunk(seq.index, seq.computed, tokens)
        row = (
            batch.start,
            steps,
            batch.decode_rows,
            batch.prefill_rows,
            batch.recomputed_rows,
            batch.held_rows,
            batch.idle_rows,
            batch.reason,
            batch.tokens,
            batch.redone,
            batch.padding,
            self.context,
            self.live + batch.tokens,
            self.filled,
            self.pool.used,
        )
        self.log.run(row, durations, growth)
        if steps > 1:
            self.fill(sum(growth))

    def advance_decoders(self, steps: int) -> None:
        """All decoding sequences have computed a token in each step."""
        self.step += steps
        self.context += self.decoders * steps
        self.live += self.decoders * steps

    def advance(self, seq: Sequence, tokens: int, now: Nanoseconds) -> None:
        """A sequence has computed so many more positions; one that caught up yields a token."""
        seq.computed += tokens
        seq.peak = max(seq.peak, seq.computed)
        self.live += tokens
        if seq.computed < seq.known or seq.over:
            return
        del self.catching_up[seq.serial]
        seq.known += 1
        self.latest_past_prefill = max(self.latest_past_prefill, seq.serial)
        if not (self.harvest_late and seq.computed == seq.goal):
            self.log_token(seq, now)
        seq.last_token = now
        if self.order.counts_service:
            self.order.token(seq, self.step)
        if seq.computed == seq.goal:
            self.finish(seq, now)
        else:
            self.start_decoding(seq)

    def log_token(self, seq: Sequence, now: Nanoseconds) -> None:
        """Write a token that does not follow from plain decoding: the first, or one after a gap."""
        if seq.last_token < 0:
            self.log.event(now, Kind.FIRST_TOKEN, seq.index)
        else:
            self.log.event(now, Kind.RESUMED, seq.index, now - seq.last_token)

    def start_decoding(self, seq: Sequence) -> None:
        """From the next step on the sequence computes one token a step."""
        seq.decoding = True
        seq.base = seq.computed - self.step
        seq.finish_at = seq.goal - seq.base
        self.decoders += 1
        self.context += seq.computed
        self.page_demand[-seq.base % self.pool.page_size] += 1
        heappush(self.finishing, (seq.finish_at, seq.serial, seq))
        if self.order.counts_service:
            self.order.decoding(seq, self.step)

    def stop_decoding(self, seq: Sequence) -> None:
        """The sequence no longer advances with the others; its progress is its own again."""
        seq.decoding = False
        seq.computed = seq.peak = self.step + seq.base
        seq.known = seq.computed + 1
        self.decoders -= 1
        self.context -= seq.computed
        self.page_demand[-seq.base % self.pool.page_size] -= 1
        if self.order.counts_service:
            self.order.paused(seq, self.step)

    def pause(self, seq: Sequence, now: Nanoseconds) -> None:
        """A decoding sequence gets no token in the step that is planned now."""
        seq.last_token = self.last_commit
        self.stop_decoding(seq)
        self.log.event(now, Kind.PAUSED, seq.index)

    def next_finish(self) -> int:
        """The step count at which the next of the decoders ends."""
        while True:
            finish_at, serial, seq = self.finishing[0]
            if seq.decoding and seq.serial == serial and seq.finish_at == finish_at:
                return finish_at
            heappop(self.finishing)

    def finish_due(self, now: Nanoseconds) -> None:
        """Decoders that have computed all they need end."""
        while self.decoders and self.next_finish() <= self.step:
            seq = heappop(self.finishing)[2]
            self.stop_decoding(seq)
            self.finish(seq, now)

    def finish(self, seq: Sequence, now: Nanoseconds) -> None:
        """The last token has been generated; the next plan, or the one after, evicts the sequence."""
        seq.over = True
        self.finished.append(seq)
        if self.evict_late:
            self.catching_up[seq.serial] = seq
        if self.harvest_late:
            self.log.event(now, Kind.LOST, seq.index)
        else:
            self.log_finish(seq, now)

    def log_finish(self, seq: Sequence, now: Nanoseconds) -> None:
        """Write the end of a request, with the tokens it was given."""
        self.log.event(now, Kind.FINISHED, seq.index, seq.request.output - self.harvest_late)
        self.log.ended += 1

    # ------------------------------------------------------------------ pages and the queue's needs

    def growth(self, seq: Sequence, tokens: int) -> int:
        """Pages that so many more positions of a running sequence begin to fill."""
        computed = self.step + seq.base if seq.decoding else seq.computed
        return self.pool.pages_for(computed + tokens) - self.pool.pages_for(computed)

    def give(self, batch: Batch, seq: Sequence, tokens: int) -> None:
        """The step computes `tokens` positions of a sequence, in pages of its own."""
        self.fill(self.growth(seq, tokens))
        batch.work.append((seq, tokens))
        batch.budget -= tokens

    def fill(self, pages: int) -> None:
        """So many pages get their first position."""
        self.filled += pages
        if self.on_demand:
            self.pool.take(pages)

    def release(self, seq: Sequence, now: Nanoseconds) -> None:
        """A finished sequence gives back its slot and its pages."""
        self.leave(seq, seq.computed)
        self.log_release(seq, now)

    def leave(self, seq: Sequence, positions: int) -> None:
        """Free the slot, and the pages of so many positions."""
        pages = self.pool.pages_for(positions)
        self.filled -= pages
        self.live -= seq.computed
        self.pool.give_back(pages if self.on_demand else seq.pages)
        del self.running[seq.serial]
        self.catching_up.pop(seq.serial, None)

    def log_release(self, seq: Sequence, now: Nanoseconds) -> None:
        """Write that a finished sequence has left; under late harvest only now is it known to have ended."""
        if self.harvest_late:
            self.log_finish(seq, now)
        self.log.event(now, Kind.RELEASED, seq.index)
        if self.order.counts_service:
            self.order.left(seq, self.step)

    def expect(self, seq: Sequence) -> int:
        """Note the pages that a waiting sequence needs to be admitted; returns them."""
        seq.needs = self.pool.pages_for(self.admission.positions(seq))
        self.waiting_needs[seq.needs] += 1
        if self.smallest_need is not None:
            self.smallest_need = min(self.smallest_need, seq.needs)
        return seq.needs

    def smallest_waiting(self) -> int:
        """The fewest pages with which any of those who wait could enter."""
        if self.smallest_need is None or not self.waiting_needs[self.smallest_need]:
            self.waiting_needs = +self.waiting_needs
            self.smallest_need = min(self.waiting_needs)
        return self.smallest_need
