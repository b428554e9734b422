"""The short-cuts of a step change nothing: the log is that of the scheduler that does without them, byte for byte."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np
import replay_scenarios
from hypothesis import event, given
from hypothesis import strategies as st
from in_order import InOrderScheduler, InOrderStaticScheduler

from sim.engine.scheduler import Scheduler
from sim.engine.static import StaticScheduler
from sim.log.events import Kind
from sim.policy.peak import Peak
from sim.policy.quantile import Quantile
from sim.service.cluster import simulate

LOGGED = ("events", "stays", "stints", "rests", "ended", "cache")


@dataclass(frozen=True)
class Settings:
    """What the scenarios of the replay leave out: limits of admission, and the rules that look at outputs."""

    max_active: int | None
    admit_every: int
    chunk_limit_adapts: bool
    contiguous: bool
    rule: object | None


settings = st.builds(
    Settings,
    max_active=st.sampled_from([None, None, 2]),
    admit_every=st.sampled_from([1, 1, 3]),
    chunk_limit_adapts=st.booleans(),
    contiguous=st.booleans(),
    rule=st.one_of(st.none(), st.builds(Peak), st.builds(Quantile, epsilon=st.sampled_from([0.05, 0.5]))),
)


def made(scenario, added, kind):
    """The engine of a scenario with the added settings, of the given kind."""
    given = scenario.scheduler()
    reserves = given.policy.admission.reserves
    config = replace(
        given.config,
        max_active=added.max_active,
        admit_every=added.admit_every,
        chunk_limit_adapts=added.chunk_limit_adapts,
        contiguous=added.contiguous and reserves,
    )
    policy = given.policy if added.rule is None or reserves else replace(given.policy, admission=deepcopy(added.rule))
    return kind(policy, given.pool, config)


@given(replay_scenarios.scenarios(admissions=("optimistic",) * 4 + ("ratio", "reserve", "static")), settings)
def test_the_log_is_that_of_the_pass_in_order(scenario, added):
    closed = scenario.admission == "static"
    kinds = (StaticScheduler, InOrderStaticScheduler) if closed else (Scheduler, InOrderScheduler)
    fast, slow = (simulate(scenario.clients(), made(scenario, added, kind), scenario.cost) for kind in kinds)
    event(f"longer runs: {len(fast.run_table()['steps']) < fast.steps}")
    event(f"preempts: {bool((fast.event_table()[:, 1] == Kind.PREEMPTED).any())}")
    event(f"{scenario.modes.get('evict', 'before')}, depth {scenario.modes.get('depth', 1)}")
    for name in LOGGED:
        assert getattr(fast, name) == getattr(slow, name), name
    assert fast.ran.durations == slow.ran.durations
    assert np.array_equal(fast.maximal_runs(), slow.maximal_runs())
    assert np.array_equal(fast.filled_by_step(), slow.filled_by_step())
    assert sorted(fast.chunk_table().tolist()) == sorted(slow.chunk_table().tolist())
    if scenario.modes.get("evict") != "after":
        # A finished sequence that takes part in one step more comes last in it, in the order of admission in the
        # pass: the same chunks in another order.
        assert fast.sha256() == slow.sha256()
