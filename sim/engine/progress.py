"""What steps do to the state: positions count from the plan on, tokens and ends come with the commit.

Because the two are apart, a step can be planned while the one before it runs (depth 2). Takes no decision.
"""

from __future__ import annotations

from array import array

from sim.engine.batch import NO_GROWTH, Batch
from sim.engine.state import EngineState
from sim.log.events import FIRST_TOKEN, LOST, RESUMED
from sim.request import Nanoseconds, Sequence


def advance(state: EngineState, batch: Batch) -> None:
    """Count what a step that has just been planned will have computed."""
    decoders = state.decoders
    decoders.advance(1)
    state.computed += batch.tokens
    if state.order.counts_tokens:
        state.order.processed(batch.tokens)
    for seq, _, tokens in batch.work:
        seq.computed += tokens
        if tokens and seq.computed == seq.known and not seq.over:
            catch_up(state, seq, batch)
    if decoders.some_due():
        end_due(state, batch)


def proceed(state: EngineState, batch: Batch, steps: int) -> None:
    """Count `steps` more steps of the same batch, as far as its `repeat` allows."""
    state.fill(sum(batch.growth[batch.steps : batch.steps + steps]))
    batch.steps += steps
    state.decoders.advance(steps)
    state.computed += state.decoders.count * steps
    if state.order.counts_tokens:
        state.order.processed(state.decoders.count * steps)
    if state.decoders.some_due():
        end_due(state, batch)


def catch_up(state: EngineState, seq: Sequence, batch: Batch) -> None:
    """The step brings the sequence a token: it decodes from here on, or has all its tokens."""
    order, step = state.order, state.decoders.step
    del state.catching_up[seq.serial]
    batch.yields.append((seq, seq.last_step))
    seq.joined = step
    seq.last_step = step - 1
    seq.known += 1
    if state.pool.late:
        state.filled.append((seq, seq.serial, seq.computed))
    state.latest_past_prefill = max(state.latest_past_prefill, seq.serial)
    if order.counts_service:
        order.token(seq, step)
    if seq.computed == seq.goal:
        end(state, seq, batch)
        return
    state.decoders.join(seq)
    if order.counts_service:
        order.decoding(seq, step)


def end_due(state: EngineState, batch: Batch) -> None:
    """Stop the decoders whose last token the last planned step brings."""
    for seq in state.decoders.due():
        state.close_stint(seq)
        end(state, seq, batch)


def end(state: EngineState, seq: Sequence, batch: Batch) -> None:
    """Nothing is left to schedule for a sequence; its end comes with the commit."""
    seq.over = True
    state.over += 1
    batch.ends.append(seq)
    if state.evict_late:
        state.catching_up[seq.serial] = seq


def commit(state: EngineState, batch: Batch, now: Nanoseconds, durations: array[Nanoseconds]) -> None:
    """The next `len(durations)` steps of the batch have run, the last of them ending now."""
    steps = len(durations)
    if batch.done + steps > batch.steps:
        proceed(state, batch, batch.done + steps - batch.steps)
    record(state, batch, durations)
    batch.start = now
    if batch.done == batch.steps and (batch.yields or batch.ends):
        harvest(state, batch, now)


def record(state: EngineState, batch: Batch, durations: array[Nanoseconds]) -> None:
    """Log the steps that have run."""
    steps, log = len(durations), state.log
    for seq, start, tokens in batch.work:
        if tokens:
            log.chunk(seq.index, start, tokens)
    growth = batch.growth
    if steps < len(growth):
        growth = NO_GROWTH if steps == 1 else NO_GROWTH + growth[batch.done + 1 : batch.done + steps]
    log.run(batch.row(steps), durations, growth)
    batch.done += steps
    if batch.done < batch.steps:
        batch.pass_over(steps, state.on_demand)


def harvest(state: EngineState, batch: Batch, now: Nanoseconds) -> None:
    """The last planned step has brought its tokens and ends."""
    log = state.log
    for seq, before in batch.yields:
        if seq.ended or (state.harvest_late and seq.over):
            continue
        if before < 0:
            log.event(now, FIRST_TOKEN, seq.index)
        else:
            log.event(now, RESUMED, seq.index, before)
    batch.ends.sort(key=by_admission)
    for seq in batch.ends:
        if not seq.ended:
            finish(state, seq, now)


def finish(state: EngineState, seq: Sequence, now: Nanoseconds) -> None:
    """The last token is there; the next plan, or the one after, evicts the sequence."""
    seq.ended = True
    if state.harvest_late:
        state.log.event(now, LOST, seq.index, state.log.steps - 1)
    else:
        state.log_end(seq, now)
    if seq.serial in state.running:
        state.finished.append(seq)
    else:  # preempted while its last token was in flight
        state.dequeue(seq, now)


def by_admission(seq: Sequence) -> int:
    """The admission number of a sequence."""
    return seq.serial


def assignments(state: EngineState, batch: Batch) -> list[tuple[Sequence, int, int]]:
    """(sequence, start, tokens) of everyone in a batch that has just been planned, in order of admission."""
    work = {seq.serial: (start, tokens) for seq, start, tokens in batch.work}
    ending = {seq.serial for seq in batch.ends}
    everyone = []
    for serial, seq in state.running.items():
        if serial in work:
            start, tokens = work[serial]
            if tokens:
                everyone.append((seq, start, tokens))
        elif seq.decoding:
            everyone.append((seq, state.decoders.computed(seq) - 1, 1))
        elif serial in ending:
            everyone.append((seq, seq.computed - 1, 1))
    return everyone
