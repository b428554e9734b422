"""Static batching: a batch forms when the engine is free, and nobody enters or leaves before all have ended.

The discipline that continuous batching replaced, kept to measure what it costs: one padded prefill to the
longest prompt, then every step is charged for the whole padded batch; slots and pages are held until the
last member ends. The token budget does not bind it.
"""

from __future__ import annotations

from sim.engine.batch import Batch
from sim.engine.scheduler import Scheduler
from sim.memory.pool import PagePool
from sim.policy.base import Policy
from sim.request import WHOLE, Leg, Nanoseconds, Request, Sequence


class StaticScheduler(Scheduler):
    """The same engine with closed batches. Raises ValueError unless the admission rule reserves."""

    closed = True

    def __init__(self, policy: Policy, pool: PagePool, *, slots: int, queue_limit: int | None = None) -> None:
        if not policy.admission.reserves:
            raise ValueError("static batching needs an admission rule that reserves pages")
        super().__init__(policy, pool, slots=slots, token_budget=1, queue_limit=queue_limit)
        self.longest = 0
        self.formed_at = 0

    def submit(self, request: Request, now: Nanoseconds, leg: Leg = WHOLE) -> Sequence | None:
        """A request arrives; it never changes a batch that is running."""
        seq = super().submit(request, now, leg)
        self.unsettled = False
        return seq

    def evict_finished(self, now: Nanoseconds) -> None:
        """The batch disbands when its last member has ended."""
        if len(self.finished) == len(self.running):
            super().evict_finished(now)

    def evict_abandoned(self, now: Nanoseconds) -> None:
        """Members whose client has given up stop, and keep their place like those that have ended."""
        for seq in self.abandoned:
            if seq.decoding:
                self.stop_decoding(seq)
            self.over += not seq.over
            seq.over = True
            self.finished.append(seq)
        self.abandoned = []
        self.evict_finished(now)

    def continue_running(self, batch: Batch) -> None:
        """Every member that has not ended gets a token."""
        self.fill(self.decoders.pages_needed[self.decoders.step % self.decoders.page_size])

    def admit_waiting(self, batch: Batch) -> None:
        """A new batch forms from those who wait, if the engine is free: whole prompts, padded to the longest."""
        if self.running:
            return
        while self.waiting.count and len(self.running) < self.slots:
            seq = self.order.head(batch.planned, self.decoders.step)
            if seq is None or not self.pool.can_take(seq.needs):
                break
            self.admit(seq, [], batch)
            self.give(batch, seq, seq.known)
        prompts = [tokens for _, _, tokens in batch.work]
        self.longest = max(prompts, default=0)
        self.formed_at = self.decoders.step
        batch.padding = len(prompts) * self.longest - sum(prompts)

    def measure(self, batch: Batch) -> None:
        """The cost is the padded batch's; every slot that does not work is held."""
        super().measure(batch)
        members = len(self.running)
        if batch.work:
            batch.chunks = batch.chunk_tokens = batch.double_work = 0
            batch.pieces = []
            for _ in batch.work:
                batch.add_chunk(0, self.longest)
        elif members:
            batch.decodes = members
            batch.longest = self.longest + self.decoders.step - self.formed_at - 1
            batch.context = members * batch.longest
        working = batch.decode_rows + batch.prefill_rows + batch.recomputed_rows
        batch.held_rows = self.slots - working if members else 0
