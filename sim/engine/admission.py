"""Admission: which waiting sequences enter the running batch in the step being planned.

`admit_waiting` is the pass over the queue. `enter` checks one sequence against prefix hits, token budget and memory,
and admits it, perhaps in place of a victim (displacement). `admit` books the admission.
"""

from __future__ import annotations

from collections.abc import Collection

from sim.engine.batch import Batch
from sim.engine.preemption import preempt
from sim.engine.state import EngineState
from sim.log.events import ADMITTED, BLOCKED, FETCHING, LIMITED, NO_BUDGET, NO_DEMAND, NO_MEMORY, Reason
from sim.memory.pool import Found
from sim.request import Nanoseconds
from sim.sequence import Sequence


def admit_waiting(state: EngineState, batch: Batch) -> Reason:
    """Admit in the policy's order while there are a slot, budget and memory; returns why the pass ended.

    The first sequence that cannot enter ends it. NO_DEMAND: no sequence waits, or all slots are taken.
    """
    limit = state.chunk_limit()
    step = state.decoders.step
    if not state.running:
        state.policy.admission.idle(step)
    elif step < state.admissions.closed_until:
        return LIMITED
    arranged = False
    most_active = state.config.most_active
    while state.waiting.count:
        if len(state.running) >= most_active:
            if state.takes_slots and take_slot(state, batch, limit):
                continue
            return LIMITED if most_active < state.config.slots else NO_DEMAND
        if not batch.budget:
            return NO_BUDGET
        if not arranged:
            state.waiting.order.arrange(batch.planned, step)
            arranged = True
        seq = state.waiting.order.head(batch.planned, step)
        if seq is None:
            return LIMITED
        obstacle = enter(state, seq, batch, limit)
        if obstacle is not None:
            return obstacle
    return NO_DEMAND


def enter(
    state: EngineState, seq: Sequence, batch: Batch, limit: int, victim: Sequence | None = None
) -> Reason | None:
    """Admit the head of the queue, in place of the victim if there is one; or return why neither happens."""
    found: Found = ()
    fetches = seq.index in state.handover.remote
    if state.pool.remembers and (fetches or not seq.computed):
        batch.found = found = state.pool.find(seq)
        if victim is not None:
            withdrawn = state.unwritten(victim)
            if withdrawn:
                batch.found = found = state.pool.ahead_of(found, victim, withdrawn)
    start = seq.computed or len(found) * state.pool.page_size
    wanted = min(seq.known - start, limit)
    tokens = min(wanted, batch.budget + (0 if victim is None else batch.tokens_of(victim)))
    config = state.config
    if not tokens or (tokens < wanted <= config.token_budget and not config.chunked):
        return NO_BUDGET
    if start + tokens < seq.known or seq.behind:
        state.expect(seq, start + tokens)
    if not has_memory_for(state, seq, found, start + tokens, victim, batch):
        batch.refused = True
        return BLOCKED if state.waiting.smallest_need() <= state.pool.free else NO_MEMORY
    batch.found = None
    if victim is not None:
        preempt(state, victim, batch)
    admit(state, seq, found, batch)
    if fetches:
        fetch(state, seq, found, batch)
    else:
        state.give(batch, seq, tokens)
    return None


def take_slot(state: EngineState, batch: Batch, limit: int) -> bool:
    """Let the head of the queue take the slot of a victim that leaves for it: both happen, or neither."""
    head = state.waiting.order.head(batch.planned, state.decoders.step)
    if head is None or head.last_step >= state.log.steps:  # none, or displaced with a token in flight
        return False
    victim = displaced(state, head, batch.planned)
    if victim is None or state.pool.others_hold(victim, state.unwritten(victim)):  # a newcomer counts on its step
        return False
    return enter(state, head, batch, limit, victim) is None


def displaced(state: EngineState, head: Sequence, now: Nanoseconds) -> Sequence | None:
    """The sequence to preempt for the head: the victim, if it is less urgent; or the choice of the order; or None."""
    step = state.decoders.step
    if not state.config.preempt_for_slot:
        return state.waiting.order.displaced(head, state.running.values(), now, step)
    victim = state.policy.victim.choose(state.running, step)
    return None if victim.over or head.request.priority >= victim.request.priority else victim


def has_memory_for(
    state: EngineState, seq: Sequence, found: Found, computed: int, victim: Sequence | None, batch: Batch
) -> bool:
    """Whether the pages a sequence needs, but for those found in use, are free and the admission rule allows it.

    computed  positions it will have after its first step
    victim    counted as if it had left already, with its part of the step
    """
    pool, admission = state.pool, state.policy.admission
    needs = pool.pages_for(admission.positions(seq, computed))
    free, to_come = pool.free, state.totals.reach - state.totals.computed
    others: Collection[Sequence] = state.running.values()
    if victim is not None:
        others = [other for other in others if other is not victim]
        has = victim.positions(state.decoders.step)
        to_come -= victim.target.most - has
        covered = state.covered(victim, has + batch.tokens_of(victim))
        held = pool.pages_for(covered) if state.on_demand else victim.pages.reserved
        free += pool.released(victim, held)
    if found:
        needs -= pool.in_use(found, victim)
    if not others:
        return needs <= free
    step = state.decoders.step
    needs += admission.spare(pool, to_come, step)
    return needs <= free and admission.allows(seq, others, pool, step)


def admit(state: EngineState, seq: Sequence, found: Found, batch: Batch) -> None:
    """Give a waiting sequence a slot and the pages found, and under a reserving rule all its pages."""
    assert seq.last_step < state.log.steps, "admitted with a token in flight"
    admissions, step = state.admissions, state.decoders.step
    state.enter(seq, admissions.count, found, state.waiting.pop(seq))
    admissions.count += 1
    admissions.closed_until = step + state.config.admit_every
    if state.config.contiguous:
        batch.copied += splice(state, seq)
    cached = 0 if seq.index in state.handover.remote else len(found) * state.pool.page_size
    state.log.event(batch.planned, ADMITTED, seq.index, cached)
    for listener in state.listeners:
        listener.admitted(seq, step)


def fetch(state: EngineState, seq: Sequence, found: Found, batch: Batch) -> None:
    """A sequence has been admitted whose KV is on another engine, but for the pages found here: it waits for that."""
    del state.catching_up[seq.serial]
    positions = seq.computed - len(found) * state.pool.page_size
    state.handover.begin(seq, positions)
    state.log.event(batch.planned, FETCHING, seq.index, positions)


def splice(state: EngineState, seq: Sequence) -> int:
    """Positions copied to bring a sequence into the contiguous cache: its prompt, or all when its rows grow."""
    admissions, most = state.admissions, seq.target.most
    if len(state.running) == 1:
        admissions.width = 0
    if most <= admissions.width:
        return seq.known
    admissions.width = most
    return len(state.running) * most
