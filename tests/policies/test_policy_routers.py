"""Routers: which replica a request goes to, by hand."""

from __future__ import annotations

from collections import Counter

import pytest

from policies import routers
from sim.request import Request
from sim.service.routing import Load


def loads(*requests, tokens=None):
    """Replicas with so many requests, and so many tokens."""
    found = []
    for number, count in enumerate(requests):
        load = Load()
        load.requests = count
        load.tokens = count if tokens is None else tokens[number]
        found.append(load)
    return found


def request(name="r", tenant="default", **content):
    return Request(name, 0, 4, 3, tenant, **content)


def test_round_robin_takes_turns():
    router = routers.RoundRobin()
    assert [router.choose(request(), loads(9, 0, 0)) for _ in range(5)] == [0, 1, 2, 0, 1]


def test_the_fewest_requests_and_the_first_of_equals():
    assert routers.LeastRequests().choose(request(), loads(2, 1, 1)) == 1


def test_the_fewest_tokens_whatever_the_requests():
    assert routers.LeastTokens().choose(request(), loads(1, 5, 2, tokens=(90, 80, 85))) == 1


def test_a_load_counts_prompt_and_maximum_output_until_the_end():
    load = Load()
    load.add(Request("a", 0, 10, 2, declared=50))
    assert (load.requests, load.tokens) == (1, 60)
    load.add(Request("a", 0, 10, 2, declared=50), -1)
    assert (load.requests, load.tokens) == (0, 0)


def test_by_lot_depends_on_the_request_and_the_seed_alone():
    names = [f"r{number}" for number in range(3000)]
    drawn = [routers.Uniform(1).choose(request(name), loads(0, 9, 9)) for name in names]
    assert drawn == [routers.Uniform(1).choose(request(name), loads(5, 0, 0)) for name in names]
    assert drawn != [routers.Uniform(2).choose(request(name), loads(0, 0, 0)) for name in names]
    # 3,000 draws among three: each expects 1,000 with a standard deviation of 26.
    assert all(abs(count - 1000) < 5 * 26 for count in Counter(drawn).values())


def test_of_two_by_lot_the_less_loaded():
    drawn = Counter(routers.PowerOfTwo(1).choose(request(f"r{n}"), loads(3, 2, 1)) for n in range(3000))
    # The fullest of three never wins; the emptiest whenever it is drawn, in two pairs of three.
    assert drawn[0] == 0
    assert abs(drawn[2] - 2000) < 5 * 26


def test_weights_are_kept_as_evenly_as_whole_requests_allow():
    # Owed 5, 1, 1 more each time, and 7 off for the chosen one.
    router = routers.Weighted((5.0, 1.0, 1.0))
    assert [router.choose(request(), loads(0, 0, 0)) for _ in range(7)] == [0, 0, 1, 0, 2, 0, 0]


def test_a_tenant_stays_where_it_came_first():
    router = routers.Sticky()
    assert router.choose(request(tenant="a"), loads(1, 0)) == 1
    assert router.choose(request(tenant="a"), loads(0, 9)) == 1
    assert router.choose(request(tenant="b"), loads(0, 9)) == 0


def test_a_known_beginning_goes_where_it_went_unless_that_is_too_busy():
    router = routers.PrefixAffinity(tokens=2, tolerance=3)
    ours, theirs = request(tokens=(1, 2, 3, 4)), request(tokens=(1, 2, 9, 9))
    assert router.choose(ours, loads(1, 0)) == 1
    assert router.choose(theirs, loads(0, 3)) == 1
    assert router.choose(theirs, loads(0, 4)) == 0
    assert router.choose(ours, loads(0, 0)) == 0


def test_without_content_there_is_no_beginning():
    router = routers.PrefixAffinity(tokens=2, tolerance=3)
    assert router.choose(request(), loads(1, 0)) == 1
    assert router.choose(request(), loads(0, 1)) == 0


def test_blocks_have_a_beginning_too_and_tenants_do_not_share_it():
    router = routers.PrefixAffinity(tokens=2, tolerance=9)
    assert router.choose(request(tenant="a", blocks=(7,), block_size=4), loads(1, 0)) == 1
    assert router.choose(request(tenant="b", blocks=(7,), block_size=4), loads(0, 1)) == 0


@pytest.mark.parametrize(
    ("name", "options", "complaint"),
    [
        ("leastrequests", {}, "'leastrequests' is unknown; did you mean least_requests?"),
        ("oracle", {}, "'oracle' is unknown; known are round_robin, random"),
        ("random", {"speed": 1}, "random.speed: unknown option; random has none"),
        ("weighted", {}, "weights is None; expected 2 numbers above 0"),
        ("weighted", {"weights": [1, 0]}, r"weights is \[1, 0\]; expected 2 numbers above 0"),
        ("weighted", {"weights": [1, 2, 3]}, "expected 2 numbers above 0"),
        ("prefix", {"tolerance": -1}, "tolerance is -1; expected a whole number, at least 0"),
    ],
)
def test_what_makes_no_sense_is_refused(name, options, complaint):
    with pytest.raises(ValueError, match=complaint):
        routers.build(name, options, 0, 2)
