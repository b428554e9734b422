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
    ending = drop_ending(state)
    if not state.members.running:
        state.gate.full = False
        return
    short = not take_part(state)
    if short and ending:
        state.gate.full = False
        return
    if short:
        retract_until_fits(state, batch)
    else:
        state.ratio.decode(1)
    if len(state.members.running) < before:
        state.gate.full = False
    if state.members.running:
        decode(state, batch)


def mix_in(state: ApartState, batch: ApartBatch) -> None:
    """The running sequences decode behind the prefills of the pass if their memory fits; else they stand still."""
    if drop_ending(state):
        state.gate.full = False
    if state.members.running and take_part(state):
        decode(state, batch)
        state.members.running = []


def drop_ending(state: ApartState) -> bool:
    """Take the sequences whose last token is in flight out of the running batch; returns whether there are any."""
    if not state.members.ending:
        return False
    before = len(state.members.running)
    state.members.running = [seq for seq in state.members.running if seq not in state.members.ending]
    return len(state.members.running) < before


def need(state: ApartState) -> int:
    """Positions, in whole pages, that begin with the next decode of the running batch."""
    decoders, size = state.decoders, state.pool.page_size
    pages = decoders.pages_needed[decoders.step % size]
    return size * (pages + sum(seq.computed % size == 0 for seq in state.members.riding))


def take_part(state: ApartState) -> bool:
    """Whether all running sequences can decode, once enough is evicted."""
    positions = need(state)
    state.pool.make_room(positions)
    return state.pool.avail >= positions


def decode(state: ApartState, batch: ApartBatch) -> None:
    """Have the running sequences decode: evict for a page of each, and take the pages that begin."""
    state.pool.make_room(state.pool.page_size * len(state.members.running))
    state.pool.take(need(state) // state.pool.page_size)
    batch.decoders = state.members.running
    batch.riders = state.members.riding
