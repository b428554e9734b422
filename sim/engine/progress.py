"""What steps do to the state: positions count from the plan on, tokens and ends come with the commit.

Because the two are apart, a step can be planned while the one before it runs (depth 2). Takes no decision.
"""

from __future__ import annotations

from array import array

from sim.engine.batch import NO_GROWTH, Batch
from sim.engine.state import EngineState
from sim.log.events import FIRST_TOKEN, RESUMED
from sim.request import Nanoseconds
from sim.sequence import Sequence


def advance(state: EngineState, batch: Batch) -> None:
    """Count what a step that has just been planned will have computed."""
    some_due = state.advance(batch.tokens, 1)
    for seq, _, tokens in batch.work:
        if seq.compute(tokens) and tokens and not seq.over:
            catch_up(state, seq, batch)
    if some_due:
        end_due(state, batch)


def proceed(state: EngineState, batch: Batch, steps: int) -> None:
    """Count `steps` more steps of the same batch, as far as its `repeat` allows."""
    row = batch.row
    state.fill(sum(batch.growth[row.steps : row.steps + steps]))
    row.steps += steps
    if state.advance(state.decoders.count, steps):
        end_due(state, batch)


def catch_up(state: EngineState, seq: Sequence, batch: Batch) -> None:
    """The step brings the sequence a token: it decodes from here on, or has all its tokens."""
    del state.catching_up[seq.serial]
    take_token(state, seq, batch)
    if seq.computed == seq.target.goal:
        end(state, seq, batch)
        return
    state.decoders.join(seq)
    for listener in state.listeners:
        listener.decoding(seq, state.decoders.step)


def take_token(state: EngineState, seq: Sequence, batch: Batch) -> None:
    """All known positions of the sequence are computed: the step brings it a token."""
    decoders = state.decoders
    batch.yields.append((seq, seq.last_step))
    if state.pool.late:
        state.admissions.filled.append((seq, seq.serial, seq.computed))
    seq.catch_up(decoders.step)
    decoders.latest = max(decoders.latest, seq.serial)
    for listener in state.listeners:
        listener.token(seq, decoders.step)


def end_due(state: EngineState, batch: Batch) -> None:
    """Stop the decoders whose last token the last planned step brings."""
    for seq in state.decoders.due():
        state.close_stint(seq)
        end(state, seq, batch)


def end(state: EngineState, seq: Sequence, batch: Batch) -> None:
    """Nothing is left to schedule for a sequence; its end comes with the commit."""
    state.close(seq)
    batch.ends.append(seq)
    if state.config.evict_late:
        state.catching_up[seq.serial] = seq


def commit(state: EngineState, batch: Batch, now: Nanoseconds, durations: array[Nanoseconds]) -> None:
    """The next `len(durations)` steps of the batch have run, the last of them ending now."""
    steps, row = len(durations), batch.row
    if row.done + steps > row.steps:
        proceed(state, batch, row.done + steps - row.steps)
    record(state, batch, durations)
    if row.done < len(batch.growth):
        row.begin(now)
    if row.done == row.steps and (batch.yields or batch.ends):
        harvest(state, batch, now)


def record(state: EngineState, batch: Batch, durations: array[Nanoseconds]) -> None:
    """Log the steps that have run."""
    steps, log, row = len(durations), state.log, batch.row
    batch.log_work(log)
    growth = batch.growth
    if steps < len(growth):
        growth = NO_GROWTH if steps == 1 else NO_GROWTH + growth[row.done + 1 : row.done + steps]
    log.run(batch.row_of(steps), durations, growth)
    row.done += steps
    if row.done < row.steps:
        batch.pass_over(steps, state.on_demand)


def harvest(state: EngineState, batch: Batch, now: Nanoseconds) -> None:
    """The last planned step has brought its tokens and ends."""
    log, late = state.log, state.config.harvest_late
    for seq, before in batch.yields:
        if seq.outcome is not None or (late and seq.over):
            continue
        if before < 0:
            log.event(now, FIRST_TOKEN, seq.index)
        else:
            log.event(now, RESUMED, seq.index, before)
    batch.ends.sort(key=by_admission)
    for seq in batch.ends:
        if seq.outcome is None:
            finish(state, seq, now)


def finish(state: EngineState, seq: Sequence, now: Nanoseconds) -> None:
    """The last token is there; the next plan, or the one after, evicts the sequence."""
    if state.config.harvest_late:
        state.lose_token(seq, now)
    else:
        state.log_end(seq, now)
    if seq.serial in state.running:
        state.leaving.finished.append(seq)
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
            everyone.append((seq, seq.positions(state.decoders.step) - 1, 1))
        elif serial in ending:
            everyone.append((seq, seq.computed - 1, 1))
    return everyone
