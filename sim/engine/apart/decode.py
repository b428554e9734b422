"""The decode of a pass: who takes part, and the memory for it."""

from __future__ import annotations

from sim.engine.apart.batch import ApartBatch
from sim.engine.apart.retraction import retract_until_fits
from sim.engine.apart.state import ApartState


def plan_decode(state: ApartState, batch: ApartBatch) -> None:
    """All running sequences decode, but those whose last token is in flight; retract some if memory is short.

    Where memory is short and such a sequence is about to free its own, the pass is left out instead.
    """
    before = len(state.members.running)
    ending = state.members.drop_ending()
    if not state.members.running:
        state.gate.full = False
        return
    positions = need(state)
    if take_part(state, positions):
        state.ratio.decode(1)
    elif ending:
        state.gate.full = False
        return
    else:
        retract_until_fits(state, batch)
        positions = need(state)
    if len(state.members.running) < before:
        state.gate.full = False
    if state.members.running:
        decode(state, batch, positions)


def mix_in(state: ApartState, batch: ApartBatch) -> None:
    """The running sequences decode behind the prefills of the pass if their memory fits; else they stand still."""
    if state.members.drop_ending():
        state.gate.full = False
    if not state.members.running:
        return
    positions = need(state)
    if take_part(state, positions):
        decode(state, batch, positions)
        batch.beside = list(state.members.running.values())
        state.members.reorder([])


def need(state: ApartState) -> int:
    """Positions, in whole pages, that begin with the next decode of the running batch."""
    decoders, size = state.decoders, state.pool.page_size
    pages = decoders.pages_needed[decoders.step % size]
    for seq in state.members.riding:
        pages += seq.computed % size == 0
    return size * pages


def take_part(state: ApartState, positions: int) -> bool:
    """Whether all running sequences can decode, which begins so many positions, once enough is evicted."""
    state.pool.make_room(positions)
    return state.pool.avail >= positions


def decode(state: ApartState, batch: ApartBatch, positions: int) -> None:
    """Have the running sequences decode: evict for a page of each, and take those that begin, `positions` in all."""
    pool = state.pool
    batch.decoding = len(state.members.running)
    pool.make_room(pool.page_size * batch.decoding)
    pool.take(positions // pool.page_size)
    batch.riders = state.members.riding
