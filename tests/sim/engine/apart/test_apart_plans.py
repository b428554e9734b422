"""How often an engine with passes of one kind plans: once for a run of decodes, also while others wait."""

from __future__ import annotations

import pytest

from policies.registry import build
from sim.cost.forms import Unit
from sim.engine.apart.config import ApartConfig, RatioConfig
from sim.engine.apart.scheduler import ApartScheduler
from sim.memory.pool import PagePool
from sim.memory.radix import RadixPool
from sim.policy.base import Optimistic, Policy
from sim.request import Request
from sim.service.cluster import simulate

ORDERS = ("requeue", "lof", "lpm", "dfs_weight", "prefill_hrrn", "shortest_prefill_first", "shuffle")
WAVES = 10


class Counted(ApartScheduler):
    """Counts the plans that have something to compute."""

    plans = 0

    def plan(self, now):
        batch = super().plan(now)
        self.plans += bool(batch.tokens)
        return batch


def equal_waves(policy, pool, **settings):
    """40 requests of 8 + 100 tokens wait from the beginning; four at a time have a row."""
    requests = [Request(str(n), 0, 8, 100, tokens=tuple(range(1000 * n, 1000 * n + 8))) for n in range(4 * WAVES)]
    given = {"slots": 4, "max_prefill_tokens": 4096} | settings
    scheduler = Counted(policy, pool, ApartConfig(**given))
    log = simulate(requests, scheduler, Unit(7))
    assert log.steps == WAVES * 100
    return scheduler.plans


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("pool", [PagePool, RadixPool])
def test_a_wave_takes_a_plan_for_its_prefill_and_one_for_all_its_decodes(order, pool):
    assert equal_waves(Policy(build(order, {}, seed=0)), pool(10**5, 1)) == WAVES * 2


@pytest.mark.parametrize("order", ORDERS)
def test_also_where_memory_and_not_slots_keep_the_others_waiting(order):
    """Each may grow to 108 positions, and all of them are kept free (a share of 1): 450 are enough for four."""
    ratio = RatioConfig(initial=1.0, minimum=1.0)
    found = equal_waves(Policy(build(order, {}, seed=0)), PagePool(450, 1), slots=40, ratio=ratio)
    assert found == WAVES * 2


def test_a_refusal_by_a_rule_is_repeated_while_nothing_leaves():
    """403 of 440 pages stay free at an admission: four prompts of 8 leave room for 5 positions."""
    watermark = Policy(build("fcfs", {}, seed=0), Optimistic(watermark=0.915))
    assert equal_waves(watermark, PagePool(440, 1), slots=40, by_rule=True) == WAVES * 2


def test_the_passes_between_two_prefills_are_planned_together():
    """No prefill is tried in the ten passes after one: a plan for these, and one for the 89 that follow."""
    policy = Policy(build("fcfs", {}, seed=0), Optimistic(watermark=0.915))
    found = equal_waves(policy, PagePool(440, 1), slots=40, by_rule=True, prefill_interval=10)
    assert found == WAVES * 3
