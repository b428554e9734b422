"""Replays on the real executor: whatever the scheduler does to a request, it gets the tokens it gets alone."""

from __future__ import annotations

import numpy as np
import pytest

from calibrate.decoder.engine.opening import open_engine
from calibrate.decoder.engine.options import EngineOptions
from calibrate.decoder.engine.synthetic import FakeExecutor
from calibrate.models.decoder_shape import ModelShape
from calibrate.replay.clock import FakeClock
from calibrate.replay.driver import Driver
from calibrate.replay.host_timing import HostTiming
from calibrate.replay.live import replay
from calibrate.replay.prompts import prompts
from policies.fcfs import FirstComeFirstServed
from sim.accounting.metrics import summary
from sim.cost.forms import Unit
from sim.engine.config import EngineConfig
from sim.engine.scheduler import Scheduler
from sim.memory.numbered import NumberedPool, NumberedPrefixPool
from sim.policy.base import Optimistic, Policy
from sim.request import Request
from sim.service.clients import OpenLoop

SMALL = ModelShape("small", 2, 64, 128, 4, 2, 16, 500, dtype="float32", max_model_len=512)


class Heard:
    """An engine that hears which tokens its requests get."""

    def __init__(self, engine):
        self.engine = engine
        self.tokens = {}
        self.waiting = []

    def __getattr__(self, name):
        return getattr(self.engine, name)

    def launch(self, step):
        self.waiting.append([row.request for row in step.rows if row.yields])
        return self.engine.launch(step)

    def collect(self, handle):
        outcome = self.engine.collect(handle)
        for request, token in zip(self.waiting.pop(0), outcome.tokens, strict=True):
            self.tokens.setdefault(request, []).append(token)
        return outcome


@pytest.fixture(scope="module")
def engine():
    options = EngineOptions(device="cpu", pages=200, host_pages=400, slots=8, token_budget=64, max_model_len=200)
    with open_engine(SMALL, options) as opened:
        opened.fill_cache(1)
        yield opened


def served(engine, requests, pages, share=None, depth=1, swap=False, slots=4, pacing="cpu"):
    pool = NumberedPool(pages, 16) if share is None else NumberedPrefixPool(pages, 16, share)
    policy = Policy(FirstComeFirstServed(), Optimistic())
    scheduler = Scheduler(policy, pool, EngineConfig(slots=slots, token_budget=64, depth=depth, swap=swap))
    heard = Heard(engine)
    done = replay(OpenLoop(requests), scheduler, heard, prompts(500, seed=2), pacing)
    return {done.log.requests[index].id: tokens for index, tokens in heard.tokens.items()}, done


def story(count=7):
    """Prompts of which three begin with the same 32 tokens, all there at once."""
    blocks = [(0, 1, n) if n % 2 else (10 * n, 10 * n + 1, 10 * n + 2) for n in range(count)]
    return [Request(str(n), 0, 40 + n, 30 - n, blocks=blocks[n], block_size=16) for n in range(count)]


@pytest.fixture(scope="module")
def alone(engine):
    found = {}
    for request in story():
        found |= served(engine, [request], 200)[0]
    return found


@pytest.mark.parametrize(
    ("settings", "preempted", "cached"),
    [
        ({"pages": 200}, False, False),
        ({"pages": 14}, True, False),
        ({"pages": 14, "swap": True}, True, False),
        ({"pages": 14, "swap": True, "depth": 2}, True, False),
        ({"pages": 200, "share": "all"}, False, True),
        ({"pages": 14, "share": "all", "depth": 2}, True, True),
    ],
)
def test_every_request_gets_the_tokens_it_gets_alone(engine, alone, settings, preempted, cached):
    tokens, done = served(engine, story(), **settings)
    found = summary(done.log)
    assert (found["preemptions"] > 0) == preempted
    assert (found["tokens"]["cached"] > 0) == cached
    assert {name: len(said) for name, said in tokens.items()} == {r.id: r.output for r in story()}
    assert tokens == alone
    assert len(done.cpu_ns) == done.log.steps
    assert not engine.tokens.known


def test_by_cpu_time_a_step_lasts_what_its_thread_worked(engine):
    _, done = served(engine, story(3), 200)
    assert done.log.step_durations().tolist() == done.cpu_ns.tolist()
    assert done.contention >= 1.0 or done.contention == pytest.approx(1.0, abs=0.1)


def test_on_the_wall_arrivals_are_at_their_own_times(engine):
    spread = [Request(str(n), n * 20_000_000, 20, 3) for n in range(5)]
    _, done = served(engine, spread, 200, pacing="wall")
    queued = done.log.event_table()[done.log.event_table()[:, 1] == 0][:, 0]
    assert queued.tolist() == [n * 20_000_000 for n in range(5)]
    assert min(done.timing.lateness) >= 0
    assert len(done.timing.lateness) == 5


class Oversleeper(FakeClock):
    """Every wait ends 3 ms late."""

    def sleep_until(self, instant):
        super().sleep_until(instant + 3_000_000)


def test_lateness_does_not_grow_from_request_to_request():
    """Pacing is absolute: waits that end late make every request a little late, not each later than the last."""
    clock = Oversleeper()
    requests = [Request(str(n), n * 50_000_000, 1, 2) for n in range(200)]
    policy = Policy(FirstComeFirstServed(), Optimistic())
    scheduler = Scheduler(policy, NumberedPool(100, 16), EngineConfig(slots=4, token_budget=64))
    driver = Driver(OpenLoop(requests), scheduler, FakeExecutor(Unit(10_000_000), clock), clock)
    driver.run()
    late = np.array(driver.timing.lateness[1:])
    assert (late == 3_000_000).all()
    assert driver.timing.summary()["lateness_per_request_s"] == pytest.approx(0, abs=1e-6)


def test_lateness_that_grows_is_seen():
    timing = HostTiming()
    for n in range(100):
        timing.received(1000 + 20 * n)
    found = timing.summary()
    assert found["lateness_per_request_s"] == pytest.approx(20e-9)
    assert found["lateness_s"]["max"] == pytest.approx(2980e-9)
    assert found["launching_s"]["n"] == 0
    assert found["launching_s"]["p50"] is None
