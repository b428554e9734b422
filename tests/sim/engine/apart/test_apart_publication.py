"""When the result of a prefill enters the cache, beside decodes that were planned before it was there."""

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

ONE_SLOT = ApartConfig(slots=1, max_prefill_tokens=1, depth=2, ratio=RatioConfig(initial=0.0, minimum=0.0))


@pytest.mark.parametrize("macro", [True, False])
def test_a_decode_run_does_not_hide_that_the_prefill_before_it_is_published(macro: bool) -> None:
    """Pages of one token. Three requests of a pass each leave a cached page. The fourth has the first one's prompt.

    Its prefill finds nothing, as the last token is always computed, and takes a page. Its first decode is planned
    while the prefill is in flight; then the prefill is published: the cached page is held, and its own is free.
    """
    prompts = [0, 1, 2, 0]
    outputs = [1, 1, 1, 3]
    requests = [
        Request(str(n), 0, 1, output, tokens=(prompt,))
        for n, (prompt, output) in enumerate(zip(prompts, outputs, strict=True))
    ]
    scheduler = ApartScheduler(Policy(build("fcfs", {}, seed=0), Optimistic()), RadixPool(11, 1, "tenant"), ONE_SLOT)
    log = simulate(requests, scheduler, Unit(7), macro)
    assert log.cached_by_step().tolist() == [0, 1, 2, 3, 3, 2]


def test_passes_of_a_plan_may_be_committed_one_by_one() -> None:
    """Pages of one token, a prompt of 3 and 5 tokens: decodes read 3, 4, 5 and 6 positions, in 4 to 7 pages."""
    config = ApartConfig(slots=1, max_prefill_tokens=8, ratio=RatioConfig(initial=0.0, minimum=0.0))
    scheduler = ApartScheduler(Policy(build("fcfs", {}, seed=0), Optimistic()), PagePool(20, 1), config)
    scheduler.submit(Request("a", 0, 3, 5), 0)
    scheduler.commit(scheduler.plan(0), 1)
    batch = scheduler.plan(1)
    for end in range(2, 6):
        scheduler.commit(batch, end)
    assert scheduler.log.run_table()["context"].tolist() == [0, 3, 4, 5, 6]
    assert scheduler.log.held_by_step().tolist() == [3, 4, 5, 6, 7]
