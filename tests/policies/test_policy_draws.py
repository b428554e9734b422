"""Draws of one request that must not agree: in two pools, in two attempts, before and after a failure."""

from __future__ import annotations

from collections import Counter

import pytest
from sim_stories import engine, job

from policies import routers
from policies.registry import build
from sim.cost.forms import Unit
from sim.log.events import Kind
from sim.request import Leg, Patience, Request
from sim.sequence import Sequence
from sim.service.outages import Outages
from sim.service.pools import Pool
from sim.service.service import Retry, Transfer, serve

PAIRS = [(first, second) for first in range(4) for second in range(4)]


def four(name, pool="", **modes):
    """Four replicas behind a router, in steps of 10 ns."""
    router = routers.build(name, {}, seed=7, replicas=4, pool=pool)
    return Pool([(engine(slots=100, **modes), Unit(10)) for _ in range(4)], router)


def visited(served):
    """The replicas that each request was sent to, in order."""
    found = {}
    for request, _, replica, _ in served.service_log.table("legs").tolist():
        found.setdefault(request, []).append(replica)
    return [tuple(replicas) for replicas in found.values()]


@pytest.mark.parametrize("name", ["random", "power_of_two"])
def test_prefill_and_decode_replicas_of_a_request_are_drawn_apart(name):
    # 640 draws among 16 pairs: 40 each with a standard deviation of 6.2 where the load does not matter.
    requests = [job(str(n), 3) for n in range(640)]
    served = serve(requests, [four(name, "prefill"), four(name, "decode")], transfer=Transfer(0, 0.0))
    pairs = Counter((first, second - 4) for first, second in visited(served))
    assert sorted(pairs) == PAIRS
    if name == "random":
        assert all(abs(count - 40) < 5 * 6.2 for count in pairs.values())


@pytest.mark.parametrize("name", ["random", "power_of_two"])
def test_a_retry_is_an_independent_draw(name):
    # Each attempt of 10 ns ends after 1 ns; the client comes again 100 ns later.
    requests = [Request(str(n), 0, 1, 1, patience=Patience(timeout=1)) for n in range(640)]
    served = serve(requests, [four(name)], retry=Retry(2, lambda request, attempts: 100))
    pairs = Counter(visited(served))
    assert sorted(pairs) == PAIRS
    if name == "random":
        assert all(abs(count - 40) < 5 * 6.2 for count in pairs.values())


def test_those_who_leave_a_failed_replica_spread_over_the_others():
    requests = [job(str(n), 9) for n in range(240)]
    outages = Outages({3: iter([(15, 1000)])}, Kind.MOVED)
    served = serve(requests, [four("random")], outages=outages)
    moved = Counter(replicas[1] for replicas in visited(served) if len(replicas) > 1)
    # About 60 are moved, 20 to each with a standard deviation of 3.7.
    assert sorted(moved) == [0, 1, 2]
    assert all(abs(count - sum(moved.values()) / 3) < 5 * 3.7 for count in moved.values())


def test_a_place_in_a_random_order_is_drawn_anew_by_a_retry_and_in_another_pool():
    order = build("random", {}, seed=7)
    sent = [[Sequence(job(str(n), 3), n, leg=Leg(sent=times)) for n in range(400)] for times in (0, 1)]
    first, again = ([order.rank(seq)[0] > 0.5 for seq in each] for each in sent)
    # 400 pairs of halves: 200 agree with a standard deviation of 10.
    assert abs(sum(one == other for one, other in zip(first, again, strict=True)) - 200) < 50
    assert first == [order.rank(seq)[0] > 0.5 for seq in sent[0]]
