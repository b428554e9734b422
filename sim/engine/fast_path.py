"""Short-cuts that make a step cost O(1), whatever the size of the batch. Each says why it changes no decision.

The scheduler is complete without them: continuing the running sequences in order, one by one, planning every step,
and counting every sequence gives the same log. A property test compares the two.
"""

from __future__ import annotations

from sim.engine.batch import NO_GROWTH, Batch
from sim.engine.state import EngineState
from sim.log.events import BLOCKED, LIMITED, NO_DEMAND

LONGEST_RUN = 256
"""Steps planned ahead at most. Only a matter of speed: a longer run is recorded in parts."""


def serve_all(state: EngineState, batch: Batch) -> bool:
    """Continue all running sequences at once, if budget and pages are enough for all; else change nothing: False.

    Equal to the pass in order: where no sequence is preempted or cut short, each gets all its tokens in any order.
    The decoders take one token each, and the pages that begin with it are counted by phase (`Decoders.pages_needed`).
    """
    decoders = state.decoders
    pages = decoders.pages_needed[decoders.step % decoders.page_size]
    left = batch.budget - decoders.count
    if left < 0:
        return False
    if not state.catching_up:
        if state.on_demand and pages > state.pool.free:
            return False
        batch.spend(decoders.count)
        if pages:
            state.fill(pages)
        return True
    limit = state.chunk_limit()
    if not all_can_be_served(state, pages, left, limit):
        return False
    batch.spend(decoders.count)
    state.fill(pages)
    for seq in state.catching_up.values():
        state.give(batch, seq, min(seq.wanted, limit, batch.budget))
    return True


def all_can_be_served(state: EngineState, pages: int, budget: int, limit: int) -> bool:
    """Whether neither pages nor budget make the order of the running sequences matter.

    The decoders need `pages` and leave `budget`. A sequence may be cut short if it was admitted after all
    decoders (`Decoders.latest`): then the pass in order, too, serves all decoders before it.
    """
    for serial, seq in state.catching_up.items():
        wanted = min(seq.wanted, limit)
        tokens = min(wanted, budget)
        if tokens < wanted and serial <= state.decoders.latest:
            return False
        budget -= tokens
        pages += state.growth(seq, tokens)
    return not state.on_demand or pages <= state.pool.free


def measure(state: EngineState, batch: Batch) -> None:
    """Enter everything the step computes into its shape and its row of the log.

    Equal to counting every sequence: the decoders' number, context and longest are kept up to date as they join,
    advance and leave; those in `work` are counted one by one.
    """
    decoders, pool, totals, row = state.decoders, state.pool, state.totals, batch.row
    batch.decodes = row.decode = batch.tokens = decoders.count
    batch.context = row.context = decoders.context
    if decoders.watched:
        batch.longest = decoders.longest()
    for seq, start, tokens in batch.work:
        batch.count(seq, start, tokens)
    if totals.swapping and batch.tokens:
        batch.swapped = state.totals.swapped()
    row.held = totals.over + len(state.handover.away)
    row.waiting = state.waiting.count
    row.live = totals.computed + state.handover.positions + batch.tokens - pool.shared
    row.pages = pool.pages - pool.free
    row.cached = pool.cached
    batch.pages = row.pages if state.on_demand else totals.touched - pool.shared // pool.page_size


def look_ahead(state: EngineState, batch: Batch, closed: bool) -> None:
    """Set for how many steps the batch may repeat without an arrival: to the next end or page shortage.

    Equal to planning each of these steps: only decoders run, so the batch can change only when one ends, when pages
    run short, when the pages of a prefill are still to enter the cache, or when a waiting sequence could enter. The
    run ends before each of these. `closed`: a finished sequence keeps its place, so it does not change the batch.
    """
    decoders = state.decoders
    count, step = decoders.count, decoders.step
    if (
        state.admissions.filled
        or batch.preempted
        or batch.tokens != count
        or not count
        or (state.totals.over and not closed)
    ):
        return
    repeat = min(decoders.next_finish() - step, LONGEST_RUN)
    if batch.refused:
        steps = state.policy.admission.next_change(step)
        repeat = repeat if steps is None else min(repeat, steps)
    opens = max(state.admissions.closed_until, state.admissions.held_until)
    if batch.reason is LIMITED and step < opens:
        repeat = min(repeat, opens - step)
    if state.on_demand and repeat > 1:
        spare = state.pool.free
        if batch.reason is BLOCKED:
            spare -= state.waiting.smallest_need()
        if batch.found:
            spare = min(spare, state.pool.takes_until_lost(batch.found))
        repeat = 1 + decoders.steps_within(spare, repeat - 1)
    if batch.reason is not NO_DEMAND or (state.takes_slots and state.waiting.count):
        batch.until, steps = state.waiting.order.next_change(batch.planned, step)
        if steps is not None:
            repeat = min(repeat, steps)
    if repeat > 1:
        batch.growth = NO_GROWTH + decoders.pages_ahead(repeat - 1)
