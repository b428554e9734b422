"""A prefix cache beside reserved pages, as TensorRT-LLM has it: steps of 1 ns, pages of 4, answers by hand."""

from __future__ import annotations

import pytest
from sim_stories import run, times

from policies.registry import build
from sim.accounting.metrics import summary
from sim.engine.config import EngineConfig
from sim.engine.scheduler import Scheduler
from sim.engine.static import StaticScheduler
from sim.memory.extents import ExtentPool
from sim.memory.pool import PagePool
from sim.policy.base import Policy, Reserve
from sim.request import Request

PROMPT = tuple(range(8))
ALIKE = [Request("a", 0, 8, 5, tokens=PROMPT), Request("b", 1, 8, 5, tokens=PROMPT)]
"""Each comes to 12 positions, three pages. b finds the first page of a: its last token is always computed."""


def served(pool, slots=4):
    return run(ALIKE, Scheduler(Policy(build("fcfs", {}, seed=0), Reserve()), pool, EngineConfig(slots, 100)))


def test_a_page_found_is_held_once_and_not_computed_again():
    log = served(ExtentPool(6, 4, "tenant"))
    assert times(log, "finished") == {"a": 5, "b": 6}
    assert summary(log)["tokens"]["cached"] == 4
    assert log.run_table()["pages"].tolist()[:2] == [3, 5]
    assert log.filled_by_step().tolist() == [2, 4, 5, 5, 5, 3]  # first decodes begin a page; a ends with step 4


@pytest.mark.parametrize(("pages", "admitted"), [(5, 5), (6, 1)])
def test_an_admission_does_not_count_on_pages_found(pages, admitted):
    """Of five pages two are free beside a. b needs three, although it would share one, and waits for the end of a."""
    log = served(ExtentPool(pages, 4, "tenant"))
    assert times(log, "admitted")["b"] == admitted


def test_what_has_ended_is_found_as_long_as_its_pages_are_not_needed():
    log = served(ExtentPool(5, 4, "tenant"))
    assert summary(log)["tokens"]["cached"] == 4


@pytest.mark.parametrize(
    ("made", "config", "message"),
    [
        (Scheduler, EngineConfig(4, 100, contiguous=True), "contiguous"),
        (StaticScheduler, EngineConfig(4, 100), "static batching"),
    ],
)
def test_memory_without_pages_of_its_own_has_no_cache(made, config, message):
    policy = Policy(build("fcfs", {}, seed=0), Reserve())
    made(policy, PagePool(10, 4), EngineConfig(4, 100))
    with pytest.raises(ValueError, match=message):
        made(policy, ExtentPool(10, 4, "tenant"), config)
