"""The scheduler without its short-cuts: everybody in order, one by one, and every step planned and counted anew."""

from __future__ import annotations

from sim.engine.scheduler import Scheduler
from sim.engine.static import StaticScheduler


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
        batch.decodes = batch.row.decode = batch.tokens = len(decoding)
        batch.context = batch.row.context = sum(seq.positions(step) for seq in decoding)
        if state.decoders.watched:
            batch.longest = max((seq.positions(step) for seq in decoding), default=0)
        for seq, start, tokens in batch.work:
            batch.count(seq, start, tokens)
        if state.totals.swapping and batch.tokens:
            batch.swapped = state.totals.swapped()
        row = batch.row
        row.held = sum(seq.over for seq in running)
        row.waiting = sum(1 for _ in state.waiting.order)
        row.live = sum(seq.positions(step) for seq in running) + batch.tokens - pool.shared
        row.pages = batch.pages = pool.used
        if not state.on_demand:
            ends = {seq.serial: start + tokens for seq, start, tokens in batch.work}
            ends |= {seq.serial: seq.positions(step) + 1 for seq in decoding}
            filled = sum(pool.pages_for(ends.get(seq.serial, seq.computed)) for seq in running)
            batch.pages = filled - pool.shared // pool.page_size
        row.cached = pool.cached


class InOrderStaticScheduler(StaticScheduler, InOrderScheduler):
    """The same with closed batches: each member that has not ended gets a token, one after the other."""

    def continue_running(self, batch):
        for seq in self.state.running.values():
            if seq.decoding:
                self.state.fill(self.state.growth(seq, 1))
