"""Displacement: a waiting sequence takes the places of running ones that are less urgent by more than a threshold."""

from __future__ import annotations

from sim.engine.apart import retraction
from sim.engine.apart.batch import ApartBatch
from sim.engine.apart.budget import PrefillBudget
from sim.engine.apart.expectation import expected
from sim.engine.apart.sequence import ApartSequence
from sim.engine.apart.state import ApartState


def displace(state: ApartState, seq: ApartSequence, budget: PrefillBudget, batch: ApartBatch) -> bool:
    """Release running sequences until the need of the waiting one fits, at least one; False: none, or not enough.

    The least urgent go first, of these the latest queued. What they were expected to need is no longer reserved. They
    are added to `batch.displaced`, by their queueing time.
    """
    config = state.config
    assert config.preempt_by is not None
    to_free = seq.fill - seq.prefix + min(seq.limit, config.ratio.clip) - budget.unreserved
    chosen: list[ApartSequence] = []
    for other in sorted(state.members.running.values(), key=lambda one: (-one.request.priority, -one.arrived)):
        if other.request.priority - seq.request.priority <= config.preempt_by:
            break
        chosen.append(other)
        to_free -= expected(state, other)
        if to_free <= 0:
            break
    if not chosen or to_free > 0:
        return False
    left = len(state.members.running)
    for other in sorted(chosen, key=lambda one: one.place):
        budget.expect_less(expected(state, other))
        left -= 1
        del state.members.running[other.serial]
        retraction.retract(state, other, left, batch)
    batch.displaced += sorted(chosen, key=lambda one: one.arrived)
    return True
