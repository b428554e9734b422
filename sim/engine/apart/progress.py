"""What passes do to the state: positions count from the plan on, tokens and ends come with the commit.

Takes no decision. `look_ahead` is a short-cut: it says for how many passes a plan holds.
"""

from __future__ import annotations

from array import array

from sim.engine.apart.batch import ApartBatch
from sim.engine.apart.sequence import ApartSequence
from sim.engine.apart.state import ApartState
from sim.engine.batch import NO_GROWTH
from sim.log.events import FINISHED, FIRST_TOKEN, LIMITED, NO_DEMAND, NO_MEMORY, RESUMED
from sim.request import Nanoseconds
from sim.sequence import Sequence

LONGEST_RUN = 256
"""Passes planned ahead at most. Only a matter of speed: a longer run is recorded in parts."""


def settle(state: ApartState, now: Nanoseconds) -> None:
    """Start of a plan: the cut sequence publishes its latest chunk, the last prefill joins the running batch."""
    members, gate = state.members, state.gate
    for seq in state.leaving.given_up():
        assert isinstance(seq, ApartSequence)
        drop_abandoned(state, seq, now)
    chunked = members.chunked
    if chunked is not None and chunked.computed > chunked.prefix:
        state.pool.publish(chunked, chunked.computed)
        chunked.prefix = chunked.computed
    if members.last:
        kept = [seq for seq in members.last if not seq.ended and seq is not chunked]
        if len(kept) < len(members.last):
            gate.open()
        if kept and not members.running:
            state.passes.begun = state.passes.extended
            gate.open()
        members.join(kept)
        for seq in kept:
            if not seq.decoding and not seq.over:
                state.join(seq)
        members.last = []
    if members.drop_ended():
        gate.open()


def drop_abandoned(state: ApartState, seq: ApartSequence, now: Nanoseconds) -> None:
    """Free what a sequence holds whose client has given up."""
    if seq.decoding:
        state.stop(seq)
    state.close_stint(seq)
    state.members.forget_last_token(seq)
    if seq is state.members.chunked:
        state.members.chunked = None
    state.leave(seq, now, finished=False)


def measure(state: ApartState, batch: ApartBatch) -> None:
    """Enter everything the pass computes into its shape and its row of the log."""
    decoders, pool, totals, row = state.decoders, state.pool, state.totals, batch.row
    if batch.decoding:
        batch.decodes = row.decode = batch.tokens = decoders.count
        batch.context = row.context = decoders.context
        if decoders.watched:
            batch.longest = decoders.longest()
    for seq, start, tokens in batch.prefills:
        batch.count(seq, start, tokens)
    for seq in batch.riders:
        batch.count(seq, seq.computed, 1)
    row.held = totals.over
    row.no_budget = totals.holders - row.decode - row.prefill - row.recomputed - row.held
    row.waiting = len(state.order)
    if batch.reason is NO_DEMAND and (row.waiting or state.gate.full):
        batch.reason = NO_MEMORY if batch.retracted else state.gate.obstacle
    row.live = totals.computed + batch.tokens - pool.shared
    row.pages = batch.pages = pool.pages - pool.free
    row.cached = pool.cached


def look_ahead(state: ApartState, batch: ApartBatch) -> None:
    """Set for how many passes the batch may repeat without an arrival: to the next end or want of pages.

    Equal to planning each of these passes: nothing is prefilled, nobody is retracted, nothing is evicted. No prefill
    may be in flight whose result enters the cache while the batch runs, and no token that is the last of a sequence.
    """
    decoders, pool, members = state.decoders, state.pool, state.members
    if not batch.decoding or batch.prefills or batch.retracted or state.totals.over or members.chunked is not None:
        return
    repeat = min(decoders.next_finish() - decoders.step, LONGEST_RUN, undisturbed(state, batch))
    if repeat > 1:
        spare = pool.avail // pool.page_size - (decoders.count if pool.evictable else 0)
        repeat = 1 if spare < 0 else 1 + decoders.steps_within(spare, repeat - 1)
    if repeat > 1:
        batch.growth = NO_GROWTH + decoders.pages_ahead(repeat - 1)


def undisturbed(state: ApartState, batch: ApartBatch) -> int:
    """For how many passes, this one included, plans try no prefill, or in vain: nothing leaves and the rule decides.

    Equal to planning them: in a run of decodes the free pages only become fewer, so that what was refused for want
    of memory is refused again, unless the rule or the order changes by itself. Where something is cached, looking up
    the head of the queue counts as a use of it, and is not left out.
    """
    gate, order, config = state.gate, state.order, state.config
    if gate.wait or batch.reason is LIMITED:
        return 1 + gate.wait
    if not len(order) or (gate.full and config.preempt_by is None):
        return LONGEST_RUN
    if not config.by_rule or config.preempt_by is not None or batch.reason is not NO_MEMORY or state.pool.remembers:
        return 1
    step = state.decoders.step
    batch.until, passes = order.next_change(batch.planned, step)
    changes = [each for each in (passes, state.admission.next_change(step)) if each is not None]
    return min(changes, default=LONGEST_RUN)


def advance(state: ApartState, batch: ApartBatch) -> None:
    """Count what a pass that has just been planned will have computed."""
    members, decoders = state.members, state.decoders
    state.totals.computed += batch.tokens
    batch.decoded_before = state.passes.decode
    number = state.passes.plan(decodes=bool(batch.decoding))
    members.ending, members.riding = [], []
    some_due = False
    if batch.decoding:
        some_due = decoders.advance(1)
        for seq in batch.riders:
            seq.compute(1)
    count_prefills(state, batch)
    for seq, _, tokens in batch.prefills:
        if seq.compute(tokens):
            batch.prefilled.append((seq, seq.serial, seq.known))
            seq.first_token(number, decoders.step)
            for listener in state.order.listeners:
                listener.token(seq, decoders.step)
            if seq.computed == seq.target.goal:
                end(state, seq, batch)
    if some_due:
        end_due(state, batch)


def count_prefills(state: ApartState, batch: ApartBatch) -> None:
    """Notify the listeners of tokens, as SGLang counts: of prefills; a decode counts the one its batch began as."""
    passes = state.passes
    if batch.prefills:
        passes.extended = sum(tokens for _, _, tokens in batch.prefills) + batch.decoding
    for listener in state.order.listeners:
        listener.processed(passes.extended if batch.prefills else passes.begun)


def proceed(state: ApartState, batch: ApartBatch, passes: int) -> None:
    """Count `passes` more passes of the same batch, all of them decodes, as far as its `repeat` allows."""
    row = batch.row
    state.pool.take(sum(batch.growth[row.steps : row.steps + passes]))
    row.steps += passes
    some_due = state.decoders.advance(passes)
    state.totals.computed += state.decoders.count * passes
    state.passes.repeat(passes)
    state.ratio.decode(passes)
    state.gate.pass_by(passes)
    for listener in state.order.listeners:
        listener.processed(passes * state.passes.begun)
    if some_due:
        end_due(state, batch)


def end_due(state: ApartState, batch: ApartBatch) -> None:
    """Stop the decoders whose last token the last planned pass brings, in the order of the batch."""
    due = state.decoders.due()
    due.sort(key=place)
    for seq in due:
        assert isinstance(seq, ApartSequence)
        state.stopped(seq, state.passes.decode)
        end(state, seq, batch)


def place(seq: Sequence) -> int:
    """Where a sequence stands in the running batch."""
    assert isinstance(seq, ApartSequence)
    return seq.place


def end(state: ApartState, seq: ApartSequence, batch: ApartBatch) -> None:
    """The last token of a sequence is planned; the engine knows that if it is the last by number."""
    state.close(seq)
    batch.ending.append(seq)
    if state.config.depth > 1:
        (state.members.ending if seq.by_length else state.members.riding).append(seq)


def commit(state: ApartState, batch: ApartBatch, now: Nanoseconds, durations: array[Nanoseconds]) -> None:
    """The next `len(durations)` passes of the batch have run, the last of them ending now."""
    passes, row = len(durations), batch.row
    if row.done + passes > row.steps:
        proceed(state, batch, row.done + passes - row.steps)
    record(state, batch, durations)
    row.begin(now)
    if row.done == row.steps and (batch.prefilled or batch.ending):
        harvest(state, batch, now)


def record(state: ApartState, batch: ApartBatch, durations: array[Nanoseconds]) -> None:
    """Log the passes that have run."""
    passes, log, row = len(durations), state.log, batch.row
    for seq, start, tokens in batch.prefills:
        log.chunk(seq.index, start, tokens)
    for seq in batch.riders:
        log.chunk(seq.index, seq.target.goal, 1)
    if not batch.decoding:
        log.stand_still()
    growth = batch.growth
    if passes < len(growth):
        growth = NO_GROWTH if passes == 1 else NO_GROWTH + growth[row.done + 1 : row.done + passes]
    log.run(batch.row_of(passes), durations, growth)
    row.done += passes
    if row.done < len(batch.growth):
        batch.pass_over(passes, True)


def harvest(state: ApartState, batch: ApartBatch, now: Nanoseconds) -> None:
    """The last planned pass has brought its tokens and ends, in the order of the batch; the retracted lose theirs."""
    log = state.log
    for seq, stay, positions in batch.prefilled:
        if seq.serial != stay or seq.ended:
            continue
        if seq.before < 0:
            log.event(now, FIRST_TOKEN, seq.index)
        else:
            log.event(now, RESUMED, seq.index, seq.before)
        if seq in batch.ending:
            finish(state, seq, now)
        else:
            state.pool.publish(seq, positions)
    for seq in batch.ending:
        if not seq.ended and seq.over and seq.serial >= 0:
            finish(state, seq, now)


def finish(state: ApartState, seq: ApartSequence, now: Nanoseconds) -> None:
    """The last token is there: memory and row are free."""
    state.close_stint(seq)
    state.end(seq, now, FINISHED)
    state.leave(seq, now, finished=True)
    state.members.forget_last_token(seq)
