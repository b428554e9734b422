"""Conversations and shared system prompts: who says what again, block by block."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from sim.request import SECOND
from traces.describe.prefix_sharing import found
from traces.synthetic import (
    Batches,
    Fixed,
    Geometric,
    Lognormal,
    Patience,
    Poisson,
    Population,
    Prefixes,
    Sessions,
    Synthetic,
    Tenant,
    generate,
    sessions,
)


def workload(**changes):
    return Synthetic(**{"arrivals": Poisson(2), "prompt": Fixed(10), "output": Fixed(6), "requests": 200, **changes})


def talk(turns=3, think=2 * SECOND, **changes):
    return Sessions(Fixed(turns), think, think_cv=changes.pop("think_cv", 0.0), **changes)


def of(requests, session):
    return [request for request in requests if request.id.startswith(f"{session}.")]


def common(one, other):
    """How many leading blocks two requests share."""
    return next(
        (k for k, (a, b) in enumerate(zip(one.blocks, other.blocks, strict=False)) if a != b), len(one.blocks)
    )


def test_each_turn_says_again_what_was_said_before():
    first, second, third = of(generate(workload(sessions=talk(), block_size=4), 0), 1)
    assert [each.id for each in (first, second, third)] == ["1.1", "1.2", "1.3"]
    assert [each.prompt for each in (first, second, third)] == [10, 10 + 6 + 10, 10 + 6 + 10 + 6 + 10]
    assert [each.arrival - first.arrival for each in (first, second, third)] == [0, 2 * SECOND, 4 * SECOND]


def test_a_cache_finds_the_full_blocks_of_the_turn_before():
    first, second, third = of(generate(workload(sessions=talk(), block_size=4), 0), 1)
    assert [len(each.blocks) for each in (first, second, third)] == [3, 7, 11]
    assert (common(first, second), common(second, third), common(first, third)) == (2, 6, 2)
    hits = found([(each.blocks, each.prompt) for each in (first, second, third)], None)
    assert hits == [0, 2, 6]


def test_sessions_share_nothing_with_each_other():
    requests = generate(workload(sessions=talk()), 0)
    assert common(of(requests, 1)[2], of(requests, 2)[2]) == 0


def test_the_rate_counts_sessions():
    requests = generate(workload(requests=None, duration=1000 * SECOND, sessions=talk(think=0)), 0)
    started = [request for request in requests if request.id.endswith(".1")]
    assert abs(len(started) - 2000) < 3.9 * math.sqrt(2000)
    assert len(requests) == 3 * len(started)


def test_think_times_are_gamma_and_start_at_the_arrival_before():
    spec = workload(
        requests=None, duration=3000 * SECOND, sessions=talk(2, 5 * SECOND, think_cv=1.0), output=Fixed(500)
    )
    requests = generate(spec, 0)
    starts = {request.id[:-2]: request.arrival for request in requests if request.id.endswith(".1")}
    ends = {request.id[:-2]: request.arrival for request in requests if request.id.endswith(".2")}
    gaps = [(ends[name] - start) / SECOND for name, start in starts.items() if start < 2800 * SECOND]
    assert stats.kstest(gaps, stats.expon(scale=5).cdf).pvalue > 1e-4


def test_a_session_ends_before_its_context_is_full():
    requests = generate(workload(sessions=talk(9, context=48)), 0)
    assert max(request.prompt + request.output for request in requests) == 10 + 3 * 6 + 2 * 10 == 48
    assert {request.id.rpartition(".")[2] for request in requests} == {"1", "2", "3"}


def test_a_number_of_requests_is_the_beginning_of_any_longer_workload():
    spec = workload(
        requests=3000,
        prompt=Lognormal(100, cv=1),
        correlation=0.5,
        sessions=Sessions(Geometric(4), 10 * SECOND, context=4000),
        prefixes=Prefixes(5, Fixed(40), 1.0),
        population=Population(3),
    )
    longer = generate(spec, 5)
    assert generate(Synthetic(**{**vars(spec), "requests": 100}), 5) == longer[:100]
    end = longer[1000].arrival
    assert generate(Synthetic(**{**vars(spec), "requests": None, "duration": end}), 5) == longer[:1000]


def test_another_tenant_leaves_sessions_as_they_were():
    talking = Tenant("a", arrivals=Poisson(1), sessions=talk(), prefixes=Prefixes(3, Fixed(20)))
    more = Tenant("b", arrivals=Poisson(9), sessions=talk(5))
    before = generate(workload(requests=None, duration=100 * SECOND, arrivals=None, tenants=(talking,)), 1)
    after = generate(workload(requests=None, duration=100 * SECOND, arrivals=None, tenants=(talking, more)), 1)
    mine = [request for request in after if request.tenant == "a"]
    assert [(r.id, r.arrival, r.prompt, r.output) for r in mine] == [
        (r.id, r.arrival, r.prompt, r.output) for r in before
    ]
    for one, other in pairwise(before):
        pair = [next(r for r in mine if r.id == each.id) for each in (one, other)]
        assert common(*pair) == common(one, other)


def test_requests_of_a_group_begin_with_its_system_prompt():
    requests = generate(workload(prefixes=Prefixes(2, Fixed(40)), block_size=16), 0)
    assert {request.prompt for request in requests} == {50}
    assert {len(request.blocks) for request in requests} == {4}
    groups = {request.blocks[:2] for request in requests}
    assert len(groups) == 2
    for request in requests[1:]:
        assert common(requests[0], request) == (2 if request.blocks[:2] == requests[0].blocks[:2] else 0)


def test_groups_are_as_popular_as_their_rank_says():
    requests = generate(workload(requests=20_000, arrivals=Poisson(1e6), prefixes=Prefixes(10, Fixed(16), 1.0)), 3)
    counts = sorted(
        (sum(r.blocks[0] == first for r in requests) for first in {r.blocks[0] for r in requests}), reverse=True
    )
    weights = np.array([1 / k for k in range(1, 11)])
    assert stats.chisquare(counts, weights / weights.sum() * 20_000).pvalue > 1e-4


def test_the_length_of_a_system_prompt_is_drawn_once_for_its_group():
    requests = generate(workload(requests=500, prompt=Fixed(1), prefixes=Prefixes(3, Geometric(500))), 3)
    assert len({request.prompt for request in requests}) == 3


def test_system_prompts_of_a_tenant_are_its_own():
    common_ones = Prefixes(1, Fixed(32))
    tenants = (Tenant("a"), Tenant("b"), Tenant("c", prefixes=Prefixes(1, Fixed(32))))
    requests = generate(workload(prefixes=common_ones, tenants=tenants), 0)
    a, b, c = (next(r for r in requests if r.tenant == name) for name in "abc")
    assert common(a, b) == 2
    assert common(a, c) == common(b, c) == 0


def test_sessions_keep_their_system_prompt():
    first, second, _ = of(generate(workload(sessions=talk(), prefixes=Prefixes(4, Fixed(20)), block_size=4), 0), 1)
    assert (first.prompt, second.prompt) == (30, 46)
    assert common(first, second) == 7


def test_a_share_of_the_clients_loses_patience_after_an_exponential_time():
    spec = workload(requests=8000, arrivals=Poisson(1e6), patience=Patience(3 * SECOND, share=0.25))
    requests = generate(spec, 0)
    found = [request.patience.cancel_after for request in requests]
    waits = [wait / SECOND for wait in found if wait is not None]
    assert abs(len(waits) - 2000) < 3.9 * math.sqrt(8000 * 0.25 * 0.75)
    assert stats.kstest(waits, stats.expon(scale=3).cdf).pvalue > 1e-4
    before = generate(workload(requests=8000, arrivals=Poisson(1e6)), 0)
    assert [(r.arrival, r.prompt, r.output) for r in requests] == [(r.arrival, r.prompt, r.output) for r in before]


def test_turns_lose_patience_each_on_its_own():
    requests = generate(workload(sessions=talk(), patience=Patience(SECOND)), 0)
    waits = [request.patience.cancel_after for request in requests]
    assert len(set(waits)) == len(requests)


def test_a_population_shares_the_rate_by_rank():
    requests = generate(workload(requests=30_000, arrivals=Poisson(1e6), population=Population(4, 1.0)), 0)
    counts = [sum(request.tenant == name for request in requests) for name in ("1", "2", "3", "4")]
    weights = np.array([1, 1 / 2, 1 / 3, 1 / 4])
    assert stats.chisquare(counts, weights / weights.sum() * 30_000).pvalue > 1e-4
    assert requests[0].id == f"{requests[0].tenant}-1"


def test_the_session_of_each_turn_is_known():
    spec = workload(requests=50, tenants=(Tenant("a", sessions=talk()), Tenant("b")))
    requests = generate(spec, 0)
    known = sessions(spec, requests)
    assert {known[request.id] for request in requests if request.id.startswith("a-1.")} == {"a-1"}
    assert not any(request.tenant == "b" for request in requests if request.id in known)


def test_sessions_may_start_in_batches():
    requests = generate(workload(requests=None, duration=5 * SECOND, arrivals=Batches(4, 4), sessions=talk(2)), 0)
    assert [r.arrival for r in requests[:8]] == [SECOND] * 4 + [2 * SECOND] * 4
    assert sum(r.arrival == 3 * SECOND for r in requests) == 8


def test_a_prompt_no_engine_could_hold_is_an_error():
    with pytest.raises(Exception, match=r"a prompt of \d+ tokens; expected at most 2147483648"):
        generate(workload(prompt=Fixed(2**31), sessions=talk()), 0)
