"""Retraction: running sequences give up their memory, many at once, until the others can decode."""

from __future__ import annotations

from sim.engine.apart.batch import ApartBatch
from sim.engine.apart.sequence import ApartSequence
from sim.engine.apart.state import ApartState
from sim.log.events import CANCELLED, PREEMPTED


def retract(state: ApartState, seq: ApartSequence, left: int, batch: ApartBatch) -> None:
    """Free the row and the memory of a running sequence, and evict so that the `left` others can go on for a while.

    It keeps its outputs, but for a token in flight, and is recomputed once it is admitted again.
    """
    if seq.decoding:
        state.stop(seq)
    state.members.forget_last_token(seq)
    state.take_back(seq)
    state.close_stint(seq)
    state.release(seq, finished=False)
    state.log.event(batch.planned, PREEMPTED, seq.index, seq.lose())
    seq.prefix = 0
    state.pool.make_room(state.config.ratio.ahead * left)


def retract_until_fits(state: ApartState, batch: ApartBatch) -> None:
    """Retract the sequences with the fewest outputs, at least one, until the next decode of the others fits.

    The others go on in the order in which they were compared: most outputs first, of these the shortest prompt. One
    is always kept; if it does not fit alone, it is aborted.
    """
    by_priority = state.config.retract_by_priority

    def key(seq: ApartSequence) -> tuple[int, int, int]:
        if state.config.retract_latest:
            return (-seq.serial, 0, 0)
        return (-seq.request.priority if by_priority else 0, state.outputs(seq), -seq.request.prompt)

    kept = sorted(state.members.running.values(), key=key, reverse=True)
    while len(kept) > 1 and not (batch.retracted and fits(state, kept)):
        seq = kept.pop()
        retract(state, seq, len(kept), batch)
        batch.retracted.append(seq)
    if len(kept) == 1 and not fits(state, kept):
        abort(state, kept.pop(), batch)
    state.members.reorder(kept)
    state.ratio.retracted([state.outputs(seq) for seq in kept], [seq.limit for seq in kept], state.config.ratio.ahead)
    for seq in batch.retracted:
        state.enqueue(seq, batch.planned, returns=True)


def fits(state: ApartState, sequences: list[ApartSequence]) -> bool:
    """Whether each of the sequences can compute one position more, once enough is evicted."""
    pool = state.pool
    need = pool.page_size * sum(seq.positions(state.decoders.step) % pool.page_size == 0 for seq in sequences)
    pool.make_room(need)
    return pool.avail >= need


def abort(state: ApartState, seq: ApartSequence, batch: ApartBatch) -> None:
    """End a sequence for which there is no memory although nobody else decodes."""
    if seq.decoding:
        state.stop(seq)
    state.take_back(seq)
    state.close_stint(seq)
    state.end(seq, batch.planned, CANCELLED)
    state.leave(seq, batch.planned, finished=False)
    batch.aborted.append(seq)
