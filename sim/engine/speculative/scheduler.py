"""The scheduler of `sim.engine.scheduler` with speculative decoding.

A sequence that has a token computes it together with its drafts, in pages taken for all of them, out of the same
token budget. The step brings the drafts that are accepted and one token more; the positions of the others are
computed again, in the same pages. Every step is planned: what it brings differs. Steps in flight beyond the first are
not modelled: a plan would have to be made before it is known which drafts the step that runs accepts.
"""

from __future__ import annotations

from sim.engine.batch import Batch
from sim.engine.config import EngineConfig
from sim.engine.intake import Intake
from sim.engine.scheduler import Scheduler
from sim.engine.speculative import progress
from sim.engine.speculative.batch import SpeculativeBatch
from sim.engine.speculative.intake import SpeculativeIntake
from sim.engine.speculative.speculation import Speculation
from sim.engine.speculative.state import SpeculativeState
from sim.engine.state import EngineState
from sim.memory.pool import PagePool
from sim.policy.base import Policy
from sim.request import Nanoseconds


class SpeculativeScheduler(Scheduler):
    """One engine that speculates.

    Raises ValueError as `Scheduler`, and for more than one step in flight, late eviction, or a contiguous cache.
    """

    def __init__(self, policy: Policy, pool: PagePool, config: EngineConfig, speculation: Speculation) -> None:
        if config.depth > 1:
            raise ValueError("speculation needs depth 1: a plan waits for what the step before accepts")
        if config.evict_late or config.contiguous:
            raise ValueError("speculation needs evict 'before' and pages")
        self.speculation = speculation
        super().__init__(policy, pool, config)

    def new_state(self) -> EngineState:
        """The state of an empty engine."""
        return SpeculativeState(self.policy, self.pool, self.config)

    def new_intake(self) -> Intake:
        """The entrance of the engine."""
        return SpeculativeIntake(self.state, self.speculation)

    def new_batch(self, now: Nanoseconds) -> Batch:
        """An empty plan."""
        return SpeculativeBatch(now, self.config.token_budget)

    def advance(self, batch: Batch) -> None:
        """Count what the step that has just been planned will have computed."""
        assert isinstance(batch, SpeculativeBatch)
        assert isinstance(self.state, SpeculativeState)
        progress.advance(self.state, batch, self.speculation.drafts)
