"""What passes do to the state: positions count from the plan on, tokens and ends come with the commit."""

from __future__ import annotations

from array import array

from sim.engine.apart.batch import ApartBatch
from sim.engine.apart.sequence import ApartSequence
from sim.engine.apart.state import ApartState
from sim.engine.batch import NO_GROWTH
from sim.log.events import FINISHED, FIRST_TOKEN, LIMITED, NO_DEMAND, RESUMED
from sim.request import Nanoseconds

LONGEST_RUN = 256
"""Passes planned ahead at most. Only a matter of speed: a longer run is recorded in parts."""


def settle(state: ApartState, now: Nanoseconds) -> None:
    """Start of a plan: the cut sequence publishes its latest chunk, the last prefill joins the running batch."""
    for seq in state.abandoned:
        drop_abandoned(state, seq, now)
    state.abandoned = []
    chunked = state.chunked
    if chunked is not None and chunked.computed > chunked.prefix:
        state.pool.publish(chunked, chunked.computed)
        chunked.prefix = chunked.computed
    if state.last:
        kept = [seq for seq in state.last if not seq.ended and seq is not chunked]
        if len(kept) < len(state.last):
            state.full = False
        if kept and not state.running:
            state.running, state.full, state.begun = kept, False, state.extended
        elif kept:
            state.running = state.running + kept
        for seq in kept:
            if not seq.decoding and not seq.over:
                state.join(seq)
        state.last = []
    if state.some_left:
        state.some_left = False
        before = len(state.running)
        state.running = [seq for seq in state.running if not seq.ended]
        if len(state.running) < before:
            state.full = False


def drop_abandoned(state: ApartState, seq: ApartSequence, now: Nanoseconds) -> None:
    """Free what a sequence holds whose client has given up."""
    if seq.decoding:
        state.stop(seq)
    state.close_stint(seq)
    if seq in state.riding:
        state.riding.remove(seq)
    if seq is state.chunked:
        state.chunked = None
    state.leave(seq, now, finished=False)


def measure(state: ApartState, batch: ApartBatch) -> None:
    """Enter everything the pass computes into its shape and its row of the log."""
    decoders, pool = state.decoders, state.pool
    if batch.decoders:
        batch.decodes = batch.decode_rows = batch.tokens = decoders.count
        batch.context = batch.decoder_context = decoders.context
        if decoders.watched:
            batch.longest = decoders.longest()
    for seq, start, tokens in batch.computes():
        batch.count(seq, start, tokens)
    batch.held_rows = state.over
    rows = batch.decode_rows + batch.prefill_rows + batch.recomputed_rows + batch.held_rows
    batch.idle_rows = state.holders - rows
    batch.waiting = len(state.order)
    if batch.reason is NO_DEMAND and (batch.waiting or state.full):
        batch.reason = state.obstacle
    batch.live = state.computed + batch.tokens - pool.shared
    batch.held_pages = batch.pages = pool.pages - pool.free
    batch.cached = pool.cached


def look_ahead(state: ApartState, batch: ApartBatch) -> None:
    """Set for how many passes the batch may repeat without an arrival: to the next end or want of pages.

    Equal to planning each of these passes: no prefill would be tried, nobody is retracted, nothing is evicted.
    """
    decoders, pool = state.decoders, state.pool
    if batch.prefills or not batch.decoders or batch.retracted or state.wait or state.over or batch.reason is LIMITED:
        return
    if state.chunked is not None or (len(state.order) and not state.full):
        return
    if len(state.order) and state.config.preempt_by is not None:
        return
    repeat = min(decoders.next_finish() - decoders.step, LONGEST_RUN)
    if repeat > 1:
        spare = pool.avail // pool.page_size - (decoders.count if pool.evictable else 0)
        repeat = 1 if spare < 0 else 1 + decoders.steps_within(spare, repeat - 1)
    if repeat > 1:
        batch.repeat = repeat
        batch.growth = NO_GROWTH + decoders.pages_ahead(repeat - 1)


def advance(state: ApartState, batch: ApartBatch) -> None:
    """Count what a pass that has just been planned will have computed."""
    state.computed += batch.tokens
    number = state.passes
    state.passes += 1
    state.ending = []
    state.riding = []
    if batch.decoders:
        state.decoders.advance(1)
        state.decode_before, state.last_decode = state.last_decode, number
        for seq in batch.riders:
            seq.computed += 1
    count_prefills(state, batch)
    for seq, _, tokens in batch.prefills:
        seq.computed += tokens
        if seq.computed == seq.known:
            batch.prefilled.append((seq, seq.serial, seq.known))
            seq.before, seq.last_step, seq.joined = seq.last_step, number, number + 1
            seq.known += 1
            if seq.computed == seq.goal:
                end(state, seq, batch)
    if batch.decoders:
        end_due(state, batch)


def count_prefills(state: ApartState, batch: ApartBatch) -> None:
    """Notify an order that counts tokens, as SGLang does: of prefills; a decode counts the one its batch began as."""
    prefill = sum(tokens for _, _, tokens in batch.prefills)
    if prefill:
        state.extended = prefill + len(batch.decoders)
    if state.order.counts_tokens:
        state.order.processed(state.extended if prefill else state.begun)


def proceed(state: ApartState, batch: ApartBatch, passes: int) -> None:
    """Count `passes` more passes of the same batch, all of them decodes, as far as its `repeat` allows."""
    state.pool.take(sum(batch.growth[batch.steps : batch.steps + passes]))
    batch.steps += passes
    state.decoders.advance(passes)
    state.computed += state.decoders.count * passes
    state.passes += passes
    state.last_decode = state.passes - 1
    state.decode_before = state.passes - 2
    state.ratio.decode(passes)
    if state.order.counts_tokens:
        state.order.processed(passes * state.begun)
    end_due(state, batch)


def end_due(state: ApartState, batch: ApartBatch) -> None:
    """Stop the decoders whose last token the last planned pass brings."""
    if state.decoders.some_due():
        for seq in state.decoders.due():
            assert isinstance(seq, ApartSequence)
            seq.last_step = state.last_decode
            end(state, seq, batch)


def end(state: ApartState, seq: ApartSequence, batch: ApartBatch) -> None:
    """The last token of a sequence is planned; the engine knows that if it is the last by number."""
    seq.over = True
    state.over += 1
    batch.ending.append(seq)
    if state.config.depth > 1:
        (state.ending if seq.by_length else state.riding).append(seq)


def commit(state: ApartState, batch: ApartBatch, now: Nanoseconds, durations: array[Nanoseconds]) -> None:
    """The next `len(durations)` passes of the batch have run, the last of them ending now."""
    passes = len(durations)
    if batch.done + passes > batch.steps:
        proceed(state, batch, batch.done + passes - batch.steps)
    record(state, batch, durations)
    batch.start = now
    if batch.done == batch.steps and (batch.prefilled or batch.ending):
        harvest(state, batch, now)


def record(state: ApartState, batch: ApartBatch, durations: array[Nanoseconds]) -> None:
    """Log the passes that have run."""
    passes, log = len(durations), state.log
    for seq, start, tokens in batch.prefills:
        log.chunk(seq.index, start, tokens)
    for seq in batch.riders:
        log.chunk(seq.index, seq.goal, 1)
    if not batch.decoders:
        log.stand_still()
    growth = batch.growth
    if passes < len(growth):
        growth = NO_GROWTH if passes == 1 else NO_GROWTH + growth[batch.done + 1 : batch.done + passes]
    log.run(batch.row(passes), durations, growth)
    batch.done += passes
    if batch.done < batch.steps:
        batch.pass_over(passes, True)


def harvest(state: ApartState, batch: ApartBatch, now: Nanoseconds) -> None:
    """The last planned pass has brought its tokens and ends, in the order of the batch; those of the retracted are lost."""
    log = state.log
    over = {seq.index for seq in batch.ending}
    for seq, stay, positions in batch.prefilled:
        if seq.serial != stay or seq.ended:
            continue
        if seq.before < 0:
            log.event(now, FIRST_TOKEN, seq.index)
        else:
            log.event(now, RESUMED, seq.index, seq.before)
        if seq.index in over:
            finish(state, seq, now)
        else:
            state.pool.publish(seq, positions)
    decoded = [seq for seq in batch.ending if not seq.ended and seq.over and seq.serial >= 0]
    if len(decoded) > 1:
        place = {seq.index: at for at, seq in enumerate(batch.decoders)}
        decoded.sort(key=lambda seq: place[seq.index])
    for seq in decoded:
        finish(state, seq, now)


def finish(state: ApartState, seq: ApartSequence, now: Nanoseconds) -> None:
    """The last token is there: memory and row are free."""
    state.close_stint(seq)
    state.end(seq, now, FINISHED)
    state.leave(seq, now, finished=True)
    if seq in state.riding:
        state.riding.remove(seq)
    if seq in state.ending:
        state.ending.remove(seq)
