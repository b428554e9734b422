"""What holds of every engine that speculates, in every mode, whatever its drafts are worth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import replay_scenarios
from hypothesis import event, given
from hypothesis import strategies as st
from speculative_stories import always, speculating

from sim.accounting.metrics import summary
from sim.accounting.requests import RequestRecords
from sim.log.events import Kind
from sim.service.cluster import simulate

random_scenarios = replay_scenarios.scenarios(admissions=("optimistic",) * 4 + ("ratio", "reserve"))


def plain(scenario):
    """The engine of a scenario as one that speculates could be: one step in flight, early eviction."""
    modes = {key: value for key, value in scenario.modes.items() if key not in ("depth", "evict", "harvest")}
    return replace(scenario, modes=modes)


def drawn(rights):
    """Acceptance that differs from token to token and from request to request."""
    return lambda request: [rights[(place + len(request.id)) % len(rights)] for place in range(request.output)]


@given(random_scenarios, st.integers(1, 6), st.lists(st.integers(0, 6), min_size=1, max_size=7))
def test_every_position_is_accounted_for(scenario, drafts, rights):
    scenario = plain(scenario)
    scheduler = speculating(scenario.scheduler(), drafts, drawn(rights))
    log = simulate(scenario.clients(), scheduler, scenario.cost)
    scheduler.check()
    records, found = RequestRecords(log), summary(log)
    verified = log.ran.verification_table()
    chunks = log.chunk_table()
    tokens = found["tokens"]
    assert tokens["computed"] == chunks[:, 3].sum() + verified[:, 3].sum()
    assert found["slot_steps"]["bought"] == sum(n for row, n in found["slot_steps"].items() if row != "bought")
    assert (verified[:, 4] >= 1).all()
    assert (verified[:, 4] <= verified[:, 3]).all()
    assert (verified[:, 3] <= 1 + drafts).all()
    assert (log.held_by_step() <= scheduler.pool.pages).all()
    assert records.delivered_by_step.sum() == records.tokens.sum() == tokens["output"]
    finished = records.kind == Kind.FINISHED
    assert (records.tokens[records.request[finished]] == records.value[finished]).all()
    assert len(records.ended) == np.count_nonzero(records.ended >= 0)
    event(f"preempted: {found['preemptions'] > 0}")
    event(f"all finished: {found['requests']['finished'] == found['requests']['injected']}")
    if found["requests"]["finished"] == found["requests"]["injected"]:
        needed = sum(request.prompt for request in log.requests) + tokens["output"] - len(log.requests)
        again = tokens["recomputed"] if not scenario.modes["swap"] else 0
        assert tokens["computed"] + tokens["cached"] == needed + again + tokens["rejected"]


@given(random_scenarios, st.integers(1, 6))
def test_macro_steps_change_nothing(scenario, drafts):
    scenario = plain(scenario)
    logs = [
        simulate(
            scenario.clients(), speculating(scenario.scheduler(), drafts, drawn([0, 2, 1])), scenario.cost, macro
        )
        for macro in (True, False)
    ]
    assert logs[0].sha256() == logs[1].sha256()
    assert summary(logs[0]) == summary(logs[1])


@given(random_scenarios, st.integers(1, 4))
def test_drafts_that_are_never_right_change_no_token_while_budget_and_pages_last(scenario, drafts):
    scenario = replace(plain(scenario), pages=10_000, admission="optimistic")
    scenario.modes.update(token_budget=10_000, chunk_limit=0, chunked=True, max_model_len=None)
    unit = replay_scenarios.Unit(7)
    one = simulate(scenario.clients(), speculating(scenario.scheduler(), drafts, always(0)), unit)
    other = simulate(scenario.clients(), scenario.scheduler(), unit)
    kept = [log.event_table()[:, :3].tolist() for log in (one, other)]
    assert kept[0] == kept[1]
    assert one.stay_table().tolist() == other.stay_table().tolist()
