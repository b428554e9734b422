"""When the result of a prefill enters the cache, beside decodes that were planned before it was there."""

from __future__ import annotations

import pytest

from policies.registry import build
from sim.cost.forms import Unit
from sim.engine.apart.config import ApartConfig, RatioConfig
from sim.engine.apart.scheduler import ApartScheduler
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
