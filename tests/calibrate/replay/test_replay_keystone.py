"""The keystone: the replay's driver on a fake engine writes the simulator's log, byte for byte."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import event, given, settings
from replay_scenarios import scenarios

from calibrate.decoder.engine.synthetic import FakeExecutor
from calibrate.replay.clock import FakeClock
from calibrate.replay.driver import Driver
from policies.registry import names
from sim.accounting.metrics import summary
from sim.service.cluster import simulate


def simulated(scenario):
    return simulate(scenario.clients(), scenario.scheduler(), scenario.cost, macro=False)


def replayed(scenario):
    clock = FakeClock()
    return Driver(
        scenario.clients(), scenario.scheduler(numbered=True), FakeExecutor(scenario.cost, clock), clock
    ).run()


def assert_same(ours, theirs):
    for part in ("events", "stays", "stints", "chunks", "rests", "reasons"):
        assert getattr(ours, part) == getattr(theirs, part), part
    for part in ("runs", "durations", "growth"):
        assert getattr(ours.ran, part) == getattr(theirs.ran, part), part
    assert ours.requests == theirs.requests
    assert ours.cache == theirs.cache
    assert ours.sha256() == theirs.sha256()


@given(scenarios())
def test_the_driver_on_a_fake_engine_writes_the_simulators_log(scenario):
    log = replayed(scenario)
    found = summary(log)
    event(f"{scenario.admission}, depth {scenario.modes.get('depth', 1)}")
    event(f"preempts: {found['preemptions'] > 0}, swaps: {scenario.modes['swap']}")
    event(f"hits: {scenario.share is not None and found['tokens']['cached'] > 0}")
    event(f"cancelled: {found['requests']['cancelled'] > 0}, timed out: {found['requests']['timed_out'] > 0}")
    event(f"rejected: {found['requests']['rejected'] > 0}, sent: {scenario.send}")
    assert_same(log, simulated(scenario))


@pytest.mark.parametrize("swap", [False, True])
def test_where_pages_are_short(swap):
    """The same where sequences are preempted or swapped all the time, and prompts found in the cache."""
    seen = Counter()

    @given(scenarios(admissions=("optimistic", "ratio"), spares=(0, 0.1, 0.3)))
    def same(scenario):
        modes = scenario.modes | {"swap": swap}
        scenario = replace(scenario, modes=modes, share=None if swap else scenario.share or "tenant")
        log = replayed(scenario)
        found = summary(log)
        seen["preempted"] += found["preemptions"] > 0
        seen["hits"] += found["tokens"]["cached"] > 0
        assert_same(log, simulated(scenario))

    same()
    assert seen["preempted"] >= 3
    assert swap or seen["hits"] >= 3


@pytest.mark.parametrize("policy", names())
def test_under_every_policy(policy):
    @settings(derandomize=True, deadline=None, max_examples=15)
    @given(scenarios(policies=(policy,), admissions=("optimistic",)))
    def same(scenario):
        assert_same(replayed(scenario), simulated(scenario))

    same()


def test_a_macro_stepped_simulation_has_the_same_digest():
    @given(scenarios())
    def same(scenario):
        fast = simulate(scenario.clients(), scenario.scheduler(), scenario.cost, macro=True)
        assert replayed(scenario).sha256() == fast.sha256()

    same()


def test_another_depth_writes_another_log():
    """The comparison is able to fail: a driver that kept one step in flight at depth 2 would be found."""
    differs = []

    @given(scenarios(policies=("fcfs",), admissions=("optimistic",)))
    def tried(scenario):
        modes = scenario.modes | {"evict": "before", "harvest": "step"}
        one, two = (replace(scenario, modes=modes | {"depth": depth}) for depth in (1, 2))
        differs.append(replayed(one).sha256() != simulated(two).sha256())

    tried()
    assert any(differs)


def test_the_driver_runs_where_neither_simpy_nor_pydantic_is_installed():
    blocked = "import sys; sys.modules.update(simpy=None, pydantic=None); "
    subprocess.run(
        [
            sys.executable,
            "-c",
            blocked + "import calibrate.replay.driver, calibrate.decoder.engine.synthetic, sim.memory.numbered",
        ],
        check=True,
    )
