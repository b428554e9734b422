"""Preemption: a running sequence gives up its slot and its pages, and returns to the queue."""

from __future__ import annotations

from sim.engine.batch import Batch
from sim.engine.state import EngineState
from sim.log.events import PREEMPTED
from sim.sequence import Sequence


def preempt(state: EngineState, victim: Sequence, batch: Batch) -> int:
    """Free the victim's slot and pages; returns its tokens of this step, which are back in the budget.

    It is recomputed or swapped out. One that is over waits only for its last token, or, with late eviction, leaves.
    """
    step, now = state.decoders.step, batch.planned
    tokens = batch.withdraw(victim)
    state.pool.withdraw(victim, state.unwritten(victim))
    if victim.decoding:
        state.stop_decoding(victim)
    state.leave(victim, victim.computed + tokens)
    if victim.over and state.config.evict_late:
        state.leaving.riding.remove(victim)
        state.release(victim, now)
        return tokens
    stay = ((seq.generated(step), seq.request.max_output) for seq in state.running.values())
    state.policy.admission.retracted(stay, step)
    elsewhere = state.handover.displace(victim)
    swap = state.config.swap and not elsewhere
    kept = swap or elsewhere
    lost = victim.lose(kept=kept)
    if swap:
        state.totals.swap(lost)
    state.log.event(now, PREEMPTED, victim.index, 0 if victim.over or kept else lost)
    state.waiting.push_back(victim, state.needs(victim), now, step)
    return tokens
