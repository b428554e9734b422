"""What the compiled core covers, and that all else runs on the Python kernel and is told the same lines."""

from dataclasses import fields, replace
from itertools import repeat

import pytest
from core_scenarios import CoreScenario
from sim_stories import job

from policies.fcfs import FirstComeFirstServed
from policies.registry import build
from sim.cost.forms import Affine, Unit
from sim.engine.config import EngineConfig
from sim.engine.scheduler import Scheduler
from sim.memory.pool import PagePool
from sim.memory.prefix import PrefixPool
from sim.policy.base import BatchWait, LastAdmitted, Optimistic, Policy, Reserve
from sim.policy.peak import Peak
from sim.request import Patience, Request
from sim.service.bounds import NONE, Bounds, Stopped
from sim.service.clients import ClosedLoop, OpenLoop
from sim.service.cluster import simulate
from sim.service.core import arrivals, run
from sim.service.pools import Pool
from sim.service.service import serve

PLAIN = CoreScenario(
    requests=[job(name, 3) for name in "abc"],
    pages=100,
    page_size=16,
    policy="fcfs",
    options={},
    admission=Optimistic(),
    victim=LastAdmitted(),
    config=EngineConfig(slots=2, token_budget=64),
    cost=Unit(1),
)


def taken(scenario=PLAIN, clients=None, scheduler=None, bounds=NONE):
    """Whether the core runs the scenario."""
    clients = clients or scenario.clients()
    return run.simulated(clients, Pool([(scheduler or scenario.scheduler(), scenario.cost)]), None, bounds)


def test_a_plain_engine_is():
    assert taken()


@pytest.mark.parametrize("macro", [True, False])
def test_the_outcome_says_whether_the_core_ran(macro):
    pool = Pool([(PLAIN.scheduler(), PLAIN.cost)])
    assert serve(PLAIN.clients(), [pool], direct=True, macro=macro).core is macro


def test_every_setting_of_an_engine_has_been_thought_of():
    """A new field is refused by `covered`, or counted by the core, before it is added here."""
    assert {field.name for field in fields(Policy)} == {"order", "admission", "victim", "batch_wait"}
    counted = {"slots", "token_budget", "chunked", "depth", "max_active", "admit_every", "chunk_limit"}
    counted |= {"chunk_limit_adapts", "queue_limit", "max_model_len"}
    refused = {"evict", "harvest", "contiguous", "swap", "preempt_for_slot"}
    assert {field.name for field in fields(EngineConfig)} == counted | refused


def test_waiting_for_larger_batches_is_not():
    scheduler = PLAIN.scheduler()
    waiting = replace(scheduler.policy, admission=Reserve(), batch_wait=BatchWait(4, 30))
    config = replace(PLAIN.config, chunked=False)
    assert not taken(scheduler=Scheduler(waiting, PagePool(100, 16), config))
    assert taken(scheduler=Scheduler(replace(waiting, batch_wait=None), PagePool(100, 16), config))


@pytest.mark.parametrize(
    "modes",
    [
        {"evict": "after"},
        {"evict": "after", "harvest": "next"},
        {"contiguous": True},
        {"swap": True},
        {"preempt_for_slot": True},
    ],
)
def test_modes_that_are_not(modes):
    policy = "priority" if "preempt_for_slot" in modes else "fcfs"
    assert not taken(replace(PLAIN, policy=policy, config=EngineConfig(slots=2, token_budget=64, **modes)))


@pytest.mark.parametrize(
    ("policy", "options"),
    [("vtc", {}), ("fair", {}), ("srpt", {"preemptive": True}), ("sjf", {"predict": "class_mean"}), ("requeue", {})],
)
def test_orders_that_are_not(policy, options):
    assert not taken(replace(PLAIN, policy=policy, options=options))


class LastComeFirstServed(FirstComeFirstServed):
    """Derived from an order that is covered."""

    def head(self, now, step):
        return self.queue[-1]


def test_an_order_derived_from_one_that_is_covered_is_not():
    policy = Policy(LastComeFirstServed())
    assert not taken(scheduler=Scheduler(policy, PagePool(100, 16), PLAIN.config))


class Dearer(Affine):
    """Derived from a cost that is covered."""

    def fixed(self, shape):
        return 2 * super().fixed(shape)


def test_costs_admissions_and_memories_that_are_not():
    assert not taken(replace(PLAIN, cost=Dearer(base=3)))
    assert not taken(replace(PLAIN, admission=Peak()))
    assert not taken(scheduler=Scheduler(Policy(build("fcfs", {}, 0)), PrefixPool(100, 16), PLAIN.config))


def test_prompts_of_which_a_cache_knows_the_content_are_not():
    asked = [replace(job("a", 3, prompt=4), tokens=(1, 2, 3, 4))]
    assert taken(replace(PLAIN, cached=True))
    assert taken(replace(PLAIN, requests=asked))
    assert not taken(replace(PLAIN, requests=asked, cached=True))


def test_clients_that_give_up_or_think_differently_each_time_are_not():
    assert taken(clients=ClosedLoop(PLAIN.requests, 1, repeat(5)))
    assert not taken(clients=ClosedLoop(PLAIN.requests, 1, repeat(5, 3)))
    assert not taken(clients=ClosedLoop(PLAIN.requests, 1, [0, 0, 0]))
    assert not taken(replace(PLAIN, requests=[replace(job("a", 3), patience=Patience(timeout=2))]))
    assert taken(replace(PLAIN, requests=[replace(job("a", 3), patience=Patience(cancel_tokens=2))]))


def test_an_engine_that_has_run_is_not():
    scheduler = PLAIN.scheduler()
    assert taken(scheduler=scheduler)
    assert not taken(scheduler=scheduler)


@pytest.mark.parametrize(
    "request_",
    [Request("a", 2**62, 1, 1), Request("a", 0, 2**60, 1), Request("a", 0, 2**70, 1), Request("a", 2**64, 1, 1)],
)
def test_numbers_that_are_too_large_are_not(request_):
    assert not taken(replace(PLAIN, requests=[request_]))


@pytest.mark.parametrize("cost", [Affine(base=1e18), Affine(base=1e300), Affine(base=2e16)])
def test_a_time_that_is_too_long_ends_in_the_line_of_the_python_kernel(cost):
    scenario = replace(PLAIN, requests=[job("a", 300, prompt=100)], cost=cost)
    assert not taken(scenario)
    with pytest.raises(Stopped, match="time: "):
        simulate(scenario.clients(), scenario.scheduler(), scenario.cost)


def test_a_run_beyond_its_bounds_ends_in_the_line_of_the_python_kernel():
    scenario = replace(PLAIN, requests=[job(str(n), 3, arrival=9 * n) for n in range(2000)])
    assert taken(scenario, bounds=Bounds(steps=6000, batches=6000))
    for bounds in (Bounds(steps=1000), Bounds(batches=1000)):
        assert not taken(scenario, bounds=bounds)
        with pytest.raises(Stopped, match=r"^(steps|batches): 1\d\d\d at \d+ ns"):
            simulate(scenario.clients(), scenario.scheduler(), scenario.cost, bounds=bounds)


def test_requests_that_were_read_before_the_core_gave_up_are_not_lost(monkeypatch):
    """The last of many times out, so that the Python kernel runs all of them again."""
    monkeypatch.setattr(run, "AT_ONCE", 4)
    asked = [job(str(n), 2, arrival=5 * n) for n in range(20)]
    asked[-1] = replace(asked[-1], patience=Patience(timeout=10**6))
    scheduler = PLAIN.scheduler()
    loop = OpenLoop(iter(asked))
    assert not taken(clients=loop, scheduler=scheduler)
    log = simulate(loop, scheduler, Unit(1))
    assert log.requests == asked
    assert log.ended == 20


@pytest.mark.parametrize("at_once", [1, 3, 7])
def test_requests_that_arrive_together_are_handed_over_together(at_once):
    asked = [job(str(n), 1, arrival=n // 5) for n in range(23)]
    read = []
    parts = list(arrivals.together(iter(asked), read, at_once))
    assert [request for part, _ in parts for request in part] == asked == read
    assert [last for _, last in parts] == [False] * (len(parts) - 1) + [True]
    ends = [part[-1].arrival for part, _ in parts]
    assert ends == sorted(set(ends))
    assert all(len(part) >= at_once for part, last in parts if not last)


def test_no_request_at_all():
    scheduler = PLAIN.scheduler()
    assert taken(replace(PLAIN, requests=[]), scheduler=scheduler)
    assert (scheduler.log.steps, scheduler.log.ended, scheduler.log.requests) == (0, 0, [])
