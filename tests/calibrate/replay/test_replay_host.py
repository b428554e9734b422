"""What the host does between two steps is small beside a step: 64 sequences, chunks, a prefix cache, page tables."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from repository import ROOT

from calibrate.decoder.engine.protocol import Outcome
from calibrate.replay.arrival_order import ByArrival
from calibrate.replay.batch_adapter import BatchAdapter
from calibrate.replay.clock import FakeClock
from calibrate.replay.driver import Driver
from calibrate.replay.prompts import prompts
from sim.engine.config import EngineConfig
from sim.engine.scheduler import Scheduler
from sim.memory import numbered as pages
from sim.policy.base import Policy
from sim.request import Request
from sim.service.clients import OpenLoop


class Nothing:
    """An engine that has always finished already."""

    page_size, pages, host_pages, max_model_len = 16, 20_000, 0, 1 << 20

    def __init__(self, clock):
        self.clock = clock

    def begin(self, request, prompt):
        pass

    def end(self, request):
        pass

    def launch(self, step):
        self.clock.sleep_until(self.clock.now() + 10_000_000)
        return len(step.rows)

    def collect(self, handle):
        return Outcome((), 1, 1, handle)


def spent(name):
    """CPU seconds a step for scheduling, rows and bookkeeping."""
    clock = FakeClock()
    scheduler = Scheduler(
        Policy(ByArrival()), getattr(pages, name)(20_000, 16), EngineConfig(slots=64, token_budget=2048)
    )
    executor = BatchAdapter(scheduler, Nothing(clock), prompts(1000, 0))
    requests = [Request(str(n), n * 1_000_000, 1500, 400) for n in range(128)]
    driver = Driver(OpenLoop(requests), scheduler, executor, clock)
    began = time.process_time()
    log = driver.run()
    assert log.run_table()["decode"].max() == 64
    return (time.process_time() - began) / log.steps


def yardstick():
    """CPU seconds of ten thousand additions: about 0.3 ms where a step was seen to take 0.10 to 0.18 ms."""
    total, began = 0, time.process_time()
    for number in range(1_000_000):
        total += number
    return (time.process_time() - began) / 100


@pytest.mark.parametrize("pool", ["NumberedPool", "NumberedPrefixPool"])
def test_scheduling_rows_and_bookkeeping_take_less_than_ten_thousand_additions_a_step(pool):
    """In a process of its own, which nobody watches line by line; both in the same run, whatever the machine."""
    words = f"from test_replay_host import *; print(min(spent({pool!r}) / yardstick() for _ in range(3)))"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("COV")}
    environment["PYTHONPATH"] = str(ROOT / "tests" / "support")
    command = [sys.executable, "-c", words]
    run = subprocess.run(command, cwd=Path(__file__).parent, env=environment, stdout=subprocess.PIPE, check=True)
    assert 0 < float(run.stdout) < 1
