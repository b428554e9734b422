"""Engines with passes of one kind that fail: what becomes of a request, by hand. Every pass takes 10 ns."""

from __future__ import annotations

import pytest
from sim_stories import booked

from policies import routers
from policies.registry import build
from sim.accounting.frames import client_frame
from sim.accounting.metrics import summary
from sim.cost.forms import Unit
from sim.engine.apart.config import ApartConfig, RatioConfig
from sim.engine.apart.scheduler import ApartScheduler
from sim.log.events import Kind
from sim.memory.pool import PagePool
from sim.memory.radix import RadixPool
from sim.policy.base import Policy
from sim.request import Request
from sim.service.failure import fail
from sim.service.outages import Outages
from sim.service.pools import Pool
from sim.service.service import serve


def engine(pool=None, **settings):
    """An engine of one row, unless said otherwise."""
    given = {"slots": 1, "max_prefill_tokens": 4096} | settings
    return ApartScheduler(Policy(build("requeue", {}, seed=0)), pool or PagePool(1000, 1), ApartConfig(**given))


def failed(requests, fate, *engines, at=25, lasts=20):
    """The service, whose first replica fails."""
    pool = Pool([(each, Unit(10)) for each in engines], routers.RoundRobin())
    return serve(requests, [pool], outages=Outages({0: iter([(at, lasts)])}, fate))


def rows(served):
    """The requests by id, as their clients see them."""
    return client_frame(served.logs, served.service_log).set_index("id")


def told(served):
    """The summary."""
    return summary(served.logs, service_log=served.service_log)


@pytest.mark.parametrize("depth", [1, 2])
def test_work_that_stays_is_computed_again_after_the_restart(depth):
    """Tokens at 10 and 20; from 45 a prefill computes prompt and both of them: tokens at 55, 65, 75."""
    served = failed([Request("a", 0, 4, 5)], Kind.PREEMPTED, engine(depth=depth))
    frame = rows(served)
    assert (frame.ended_ns["a"], frame.tokens["a"], frame.preemptions["a"]) == (75, 5, 1)
    assert frame.max_itl_s["a"] == pytest.approx(35e-9)
    assert booked(told(served)) == {"prefill": 1, "decode": 3, "recomputed": 1}
    assert told(served)["tokens"]["recomputed"] == 5  # the prompt, and the one token of which a pass had ended


@pytest.mark.parametrize("depth", [1, 2])
def test_work_that_moves_goes_on_with_its_tokens_elsewhere(depth):
    """Tokens at 10 and 20; at 25 the other replica prefills what is known: 35, 45, 55."""
    served = failed([Request("a", 0, 4, 5)], Kind.MOVED, engine(depth=depth), engine(depth=depth))
    frame = rows(served)
    assert (frame.ended_ns["a"], frame.tokens["a"], frame.attempts["a"], frame.replica["a"]) == (55, 5, 1, 1)
    assert frame.max_itl_s["a"] == pytest.approx(15e-9)
    # 4 + 5 - 1 positions are needed, and 5 that the first replica had were computed again.
    assert (told(served)["tokens"]["computed"], told(served)["tokens"]["recomputed"]) == (13, 5)


def test_work_that_is_lost_ends():
    served = failed([Request("a", 0, 4, 5)], Kind.INTERRUPTED, engine(depth=2))
    assert told(served)["rejections"] == {"its replica failed": 1}


@pytest.mark.parametrize("depth", [1, 2])
def test_of_a_prompt_in_parts_the_parts_that_have_ended_are_thrown_away(depth):
    """A prompt of 20 in chunks of 8, 8 and 4. At 15 the second runs: from 35 all three run again."""
    served = failed(
        [Request("a", 0, 20, 3)], Kind.PREEMPTED, engine(depth=depth, chunked_prefill_size=8), at=15, lasts=20
    )
    frame = rows(served)
    assert (frame.ended_ns["a"], frame.ttft_s["a"]) == (85, pytest.approx(65e-9))
    assert told(served)["tokens"]["recomputed"] == 8


def test_a_failure_empties_the_radix_cache():
    """b has the prompt of a and comes after the failure: nothing is found, and after it c finds all but a token."""
    prompt = tuple(range(8))
    requests = [Request(name, at, 8, 1, tokens=prompt) for name, at in (("a", 0), ("b", 60), ("c", 80))]
    served = failed(requests, Kind.PREEMPTED, engine(RadixPool(100, 1)), at=25)
    admitted = [row[3] for row in served.logs[0].event_table().tolist() if row[1] == Kind.ADMITTED]
    assert admitted == [0, 0, 7]


def test_a_failure_forgets_what_outputs_have_been_like():
    """A prefill and five decodes: the share kept free has fallen from 1 to 0, and is 1 after the failure."""
    one = engine(ratio=RatioConfig(initial=1.0, minimum=0.0, decay_passes=5))
    one.submit(Request("a", 0, 4, 12), 0)
    for now in range(0, 60, 10):
        one.commit(one.plan(now), now + 10)
    assert one.state.ratio.current == pytest.approx(0)
    fail(one, 60, 60, [], Kind.PREEMPTED)
    assert one.state.ratio.current == 1


def test_the_last_token_of_one_that_rides_along_is_not_taken_back_twice():
    """At depth 2 an end that the engine does not foresee is seen a pass late. a ends with the pass from 10 on, by its
    second token of 9 that it may have, and rides along in the one that is cut at 25; b has tokens at 10 and 20.
    """
    requests = [Request("a", 0, 4, 2, declared=9), Request("b", 0, 4, 5)]
    served = failed(requests, Kind.PREEMPTED, engine(slots=2, depth=2))
    frame = rows(served)
    assert (frame.ended_ns["a"], frame.tokens["a"]) == (20, 2)
    assert (frame.ended_ns["b"], frame.tokens["b"]) == (75, 5)
