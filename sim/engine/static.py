"""Static batching: a batch forms when the engine is free, and no sequence enters or leaves before all have ended.

The discipline that continuous batching replaced, kept to measure what it costs: one prefill padded to the longest
prompt, then every step is charged for the whole padded batch; slots and pages are held until the last member ends.
The token budget does not bind it.
"""

from __future__ import annotations

from sim.engine.admission import admit
from sim.engine.batch import Batch
from sim.engine.config import EngineConfig
from sim.engine.scheduler import Scheduler
from sim.memory.pool import PagePool
from sim.policy.base import Policy
from sim.request import Nanoseconds
from sim.subclassing import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class StaticScheduler(Scheduler):
    """The same engine with closed batches. Only `slots` and `queue_limit` of the settings apply.

    Raises ValueError unless the admission rule reserves, the order does not preempt, and nothing is cached.
    """

    closed = True

    def __init__(self, policy: Policy, pool: PagePool, config: EngineConfig) -> None:
        if not policy.admission.reserves:
            raise ValueError("static batching needs an admission rule that reserves pages")
        if policy.order.preempts:
            raise ValueError("static batching needs an order that does not preempt: nobody leaves a batch")
        if pool.remembers:
            raise ValueError("static batching has no prefix cache")
        super().__init__(policy, pool, config)
        self.longest_prompt = 0
        self.formed_at = 0

    def evict_finished(self, now: Nanoseconds) -> None:
        """The batch disbands when its last member has ended."""
        if len(self.state.leaving.finished) == len(self.state.running):
            super().evict_finished(now)

    def evict_abandoned(self, now: Nanoseconds) -> None:
        """Members whose client has given up stop, and keep their place like those that have ended."""
        state = self.state
        for seq in state.leaving.given_up():
            if seq.decoding:
                state.stop_decoding(seq)
            state.close(seq)
            state.leaving.finished.append(seq)
        self.evict_finished(now)

    def continue_running(self, batch: Batch) -> None:
        """Every member that has not ended gets a token."""
        decoders = self.state.decoders
        self.state.fill(decoders.pages_needed[decoders.step % decoders.page_size])

    def admit_waiting(self, batch: Batch) -> None:
        """If the engine is free, a new batch forms from the queue: whole prompts, padded to the longest."""
        state = self.state
        if state.running:
            return
        step = state.decoders.step
        while state.waiting.count and len(state.running) < self.config.slots:
            seq = state.waiting.order.head(batch.planned, step)
            if seq is None or not self.pool.can_take(state.waiting.needs[seq.index]):
                break
            admit(state, seq, [], batch)
            state.give(batch, seq, seq.known)
        prompts = [tokens for _, _, tokens in batch.work]
        self.longest_prompt = max(prompts, default=0)
        self.formed_at = step
        batch.row.padding = len(prompts) * self.longest_prompt - sum(prompts)

    def measure(self, batch: Batch) -> None:
        """Count the padded batch; every slot that does not work is held."""
        super().measure(batch)
        members = len(self.state.running)
        if batch.work:
            batch.chunks = batch.chunk_tokens = batch.double_work = 0
            batch.pieces = []
            for _ in batch.work:
                batch.add_chunk(0, self.longest_prompt)
        elif members:
            batch.decodes = members
            batch.longest = self.longest_prompt + self.state.decoders.step - self.formed_at - 1
            batch.context = members * batch.longest
        row = batch.row
        row.held = self.config.slots - row.decode - row.prefill - row.recomputed if members else 0
