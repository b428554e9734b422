"""The scheduler without its short-cuts: everybody in order, one by one, and every step planned and counted anew."""

from __future__ import annotations

from sim.engine.scheduler import Scheduler


class InOrderScheduler(Scheduler):
    """Serves every running sequence in turn, never looks ahead, and counts what each sequence does."""

    def continue_running(self, batch):
        self.continue_in_order(batch)

    def look_ahead(self, batch):
        """Every step is planned."""

    def measure(self, batch):
        state, pool = self.state, self.pool
        step = state.decoders.step
        running = list(state.running.values())
        decoding = [seq for seq in running if seq.decoding]
        batch.decodes = batch.decode_rows = batch.tokens = len(decoding)
        batch.context = batch.decoder_context = sum(step + seq.base for seq in decoding)
        if state.decoders.watched:
            batch.longest = max((step + seq.base for seq in decoding), default=0)
        for seq, start, tokens in batch.work:
            batch.count(seq, start, tokens)
        if state.swapping and batch.tokens:
            batch.swapped, state.swapping = state.swapping, 0
        computed = sum(step + seq.base if seq.decoding else seq.computed for seq in running)
        batch.held_rows = sum(seq.over for seq in running)
        batch.waiting = sum(1 for _ in state.order)
        batch.live = computed + batch.tokens - pool.shared
        batch.held_pages = pool.used
        batch.pages = batch.held_pages
        if not state.on_demand:
            ends = {seq.serial: start + tokens for seq, start, tokens in batch.work}
            ends |= {seq.serial: step + seq.base + 1 for seq in decoding}
            batch.pages = sum(pool.pages_for(ends.get(seq.serial, seq.computed)) for seq in running)
        batch.cached = pool.cached
