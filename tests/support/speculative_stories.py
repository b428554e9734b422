"""Engines that speculate, for tiny stories."""

from __future__ import annotations

from sim.engine.scheduler import Scheduler
from sim.engine.speculative.scheduler import SpeculativeScheduler
from sim.engine.speculative.speculation import Speculation


def always(right):
    """Of each draft the first `right` tokens are accepted."""
    return lambda request: [right] * request.output


def speculating(plain: Scheduler, drafts, accepted):
    """An engine like `plain`, not yet used, that speculates."""
    return SpeculativeScheduler(plain.policy, plain.pool, plain.config, Speculation(drafts, accepted))
