"""The longest match with the prefix cache goes first, and waiting makes up for it."""

from __future__ import annotations

import pytest
from sim_stories import happenings, run, times

import slotstep
from policies.registry import build
from sim.accounting.metrics import summary
from sim.engine.config import EngineConfig
from sim.engine.scheduler import Scheduler
from sim.memory.prefix import PrefixPool
from sim.policy.base import Policy
from sim.request import Request
from traces.errors import BadInput

PAGE = 4


def asked(name, arrival, *pages, output=1):
    """A request whose prompt is these pages of four equal tokens, and one token more."""
    tokens = (*(token for page in pages for token in [page] * PAGE), 99)
    return Request(name, arrival, len(tokens), output, tokens=tokens)


def served(requests, pages=100, **options):
    """The log of one slot under the order."""
    order = build("longest_prefix", options, 0)
    return run(requests, Scheduler(Policy(order), PrefixPool(pages, PAGE), EngineConfig(slots=1, token_budget=100)))


def admitted(log):
    return [event.who for event in happenings(log, "admitted")]


def test_the_longest_match_goes_first():
    # While "first" runs its 5 steps with pages 1 2 3 in the cache, three wait: nothing found, one page, three pages.
    requests = [
        asked("first", 0, 1, 2, 3, output=5),
        asked("none", 1, 7, 8, 9),
        asked("one", 2, 1, 8, 9),
        asked("three", 3, 1, 2, 3),
    ]
    log = served(requests)
    assert admitted(log) == ["first", "three", "one", "none"]
    assert times(log, "finished") == {"first": 5, "three": 6, "one": 7, "none": 8}
    assert summary(log)["cache"]["hit_tokens"] == 16


def test_what_is_computed_meanwhile_counts_at_once():
    # Nothing is in the cache when both wait; "a" goes first as the older, and "c", like it, passes "b" then.
    requests = [asked("x", 0, 5, output=3), asked("a", 0, 1, 2), asked("b", 0, 3, 4), asked("c", 1, 1, 2)]
    assert admitted(served(requests)) == ["x", "a", "c", "b"]


def test_waiting_makes_up_for_a_match():
    # "three" finds 12 tokens and comes 10 ns after "none": worth 12 units.
    requests = [asked("first", 0, 1, 2, 3, output=20), asked("none", 1, 7), asked("three", 11, 1, 2, 3)]
    assert admitted(served(requests, unit=1)) == ["first", "three", "none"]
    requests[2] = asked("three", 14, 1, 2, 3)
    assert admitted(served(requests, unit=1)) == ["first", "none", "three"]


def test_with_more_waiting_than_are_looked_at_the_order_is_by_arrival():
    requests = [asked("first", 0, 1, 2, output=5), asked("none", 1, 7), asked("two", 2, 1, 2), asked("more", 3, 1, 2)]
    assert admitted(served(requests, most=3)) == ["first", "two", "more", "none"]
    # Three wait: "none" goes as the oldest; then two are within the limit.
    assert admitted(served(requests, most=2)) == ["first", "none", "two", "more"]


def test_what_is_evicted_is_found_no_more():
    # "a" leaves 1 2 3 in the cache; "b" comes to hold 5 + 28 positions, 9 pages: all there are, or some of many.
    requests = [asked("a", 0, 1, 2, 3), asked("b", 0, 6, output=29), asked("old", 1, 7), asked("wants", 2, 1, 2, 3)]
    plenty, scarce = served(requests, pages=100), served(requests, pages=9)
    assert admitted(plenty) == ["a", "b", "wants", "old"]
    assert admitted(scarce) == ["a", "b", "old", "wants"]


def test_it_needs_a_cache():
    mapping = {"workload": {"requests": [{"output": 1}]}, "cost": {"unit": "1ms"}}
    for policy in ("longest_prefix", {"tenant_slots": {"order": {"max_wait": {"order": "longest_prefix"}}}}):
        with pytest.raises(BadInput, match=r"policy: longest_prefix needs engine.prefix_cache: true"):
            slotstep.parse(mapping | {"policy": policy})
        assert slotstep.parse(mapping | {"policy": policy, "engine": {"prefix_cache": True}})
