"""Synthetic workloads: arrival laws against theory, exact times, and streams that do not disturb each other."""

import hashlib
import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sim.request import SECOND
from traces import BadInput
from traces.synthetic import AtOnce, Fixed, Gamma, Geometric, Lognormal, Poisson, Stream, Synthetic, Tenant, generate
from traces.synthetic.arrivals import Arrivals, ArrivalTimes


def arrivals(requests):
    return np.array([request.arrival for request in requests])


def of(requests, tenant):
    return [request for request in requests if request.tenant == tenant]


def workload(**changes):
    return Synthetic(**{"arrivals": Poisson(20), "prompt": Fixed(512), "output": Geometric(50), **changes})


def test_poisson_gaps_are_exponential_at_the_rate():
    gaps = np.concatenate([np.diff(arrivals(generate(workload(requests=5001), seed))) / SECOND for seed in range(8)])
    assert abs(gaps.mean() - 1 / 20) < 3.9 / 20 / math.sqrt(len(gaps))
    assert stats.kstest(gaps, stats.expon(scale=1 / 20).cdf).pvalue > 1e-4


@pytest.mark.parametrize("cv", [0.25, 1.0, 3.0])
def test_gamma_gaps_have_the_rate_and_the_cv(cv):
    gaps = np.concatenate(
        [
            np.diff(arrivals(generate(workload(requests=10_001, arrivals=Gamma(20, cv)), seed))) / SECOND
            for seed in range(4)
        ]
    )
    n = len(gaps)
    assert abs(gaps.mean() - 1 / 20) < 3.9 * cv / 20 / math.sqrt(n)
    # the sample variance of a gamma has variance sigma^4 (2 + excess kurtosis) / n, with excess kurtosis 6 cv^2
    relative = 3.9 * math.sqrt((2 + 6 * cv**2) / n)
    assert abs(gaps.var() / (cv / 20) ** 2 - 1) < relative


def test_the_number_of_arrivals_in_a_duration_is_poisson():
    counts = [len(generate(workload(duration=10 * SECOND), seed)) for seed in range(32)]
    assert abs(np.mean(counts) - 200) < 3.9 * math.sqrt(200 / 32)
    dispersion = np.var(counts, ddof=1) / np.mean(counts) * 31
    assert stats.chi2.ppf(1e-4, 31) < dispersion < stats.chi2.ppf(1 - 1e-4, 31)


class EveryThirdOfASecond(Arrivals):
    """Gaps that do not fit a float of seconds: each is rounded to whole nanoseconds, then summed as integers."""

    rate = 3.0

    def unit_gaps(self, generator, n):
        return np.ones(n)


def test_arrival_times_are_exact_sums_of_whole_nanoseconds():
    times = ArrivalTimes(EveryThirdOfASecond(), 3.0, Stream(0, "x")).until(10**6 * SECOND)
    assert times[0] == 333_333_333
    assert times[-1] == len(times) * 333_333_333
    assert len(times) == 10**6 * SECOND // 333_333_333


@given(st.lists(st.integers(0, 100 * SECOND), min_size=1, max_size=5))
def test_a_clock_gives_the_same_times_however_it_is_asked(horizons):
    asked, fresh = (ArrivalTimes(Gamma(50, 2), 50, Stream(1, "x")) for _ in range(2))
    for horizon in horizons:
        part = asked.until(horizon)
        assert (part <= horizon).all()
    assert np.array_equal(asked.until(horizons[-1]), fresh.until(horizons[-1]))


def test_twice_the_rate_is_the_same_pattern_in_half_the_time():
    slow = arrivals(generate(workload(requests=500, arrivals=Poisson(10)), 3))
    fast = arrivals(generate(workload(requests=500, arrivals=Poisson(20)), 3))
    assert np.abs(slow - 2 * fast).max() <= 1.5 * 500


def test_requests_are_numbered_in_order_of_arrival():
    requests = generate(workload(requests=50), 0)
    assert [request.id for request in requests] == [str(number) for number in range(1, 51)]
    assert (np.diff(arrivals(requests)) >= 0).all()
    assert {request.prompt for request in requests} == {512}
    assert {request.tenant for request in requests} == {"default"}


def test_a_number_of_requests_is_the_beginning_of_any_longer_workload():
    tenants = (Tenant("a", weight=3), Tenant("b", output=Lognormal(100, cv=1)))
    longer = generate(workload(requests=3000, tenants=tenants), 5)
    assert generate(workload(requests=100, tenants=tenants), 5) == longer[:100]
    end = longer[1000].arrival
    assert generate(workload(duration=end, tenants=tenants), 5) == longer[:1000]


def test_arrivals_prompts_and_outputs_have_streams_of_their_own():
    before = generate(workload(requests=200), 1)
    other_prompt = generate(workload(requests=200, prompt=Lognormal(90, cv=2)), 1)
    other_output = generate(workload(requests=200, output=Fixed(1)), 1)
    other_arrivals = generate(workload(requests=200, arrivals=Gamma(7, 3)), 1)
    assert [(r.arrival, r.output) for r in other_prompt] == [(r.arrival, r.output) for r in before]
    assert [(r.arrival, r.prompt) for r in other_output] == [(r.arrival, r.prompt) for r in before]
    assert [(r.prompt, r.output) for r in other_arrivals] == [(r.prompt, r.output) for r in before]


def test_another_tenant_with_arrivals_of_its_own_leaves_every_other_request_as_it_was():
    two = (Tenant("a", weight=3), Tenant("b", prompt=Geometric(9)))
    more = (Tenant("c", arrivals=Gamma(30, 2), output=Fixed(3)), *two)
    before = generate(workload(duration=60 * SECOND, tenants=two), 1)
    after = generate(workload(duration=60 * SECOND, tenants=more), 1)
    assert len(of(after, "c")) > 1000
    assert [request for request in after if request.tenant != "c"] == before


def test_another_tenant_by_weight_leaves_lengths_as_they_were_and_stretches_arrivals():
    before = generate(workload(requests=2000, tenants=(Tenant("a"), Tenant("b"))), 1)
    after = generate(workload(requests=2000, tenants=(Tenant("a"), Tenant("b"), Tenant("c", weight=2))), 1)
    for name in "ab":
        pairs = list(zip(of(before, name), of(after, name), strict=False))
        assert len(pairs) > 400
        for nth, (old, new) in enumerate(pairs, start=1):
            assert (old.id, old.prompt, old.output) == (new.id, new.prompt, new.output)
            assert abs(new.arrival - 2 * old.arrival) <= 1.5 * nth


def test_tenants_share_the_rate_by_weight():
    tenants = (Tenant("a", weight=3), Tenant("b"))
    requests = [
        request for seed in range(8) for request in generate(workload(duration=100 * SECOND, tenants=tenants), seed)
    ]
    assert abs(len(of(requests, "a")) - 8 * 1500) < 3.9 * math.sqrt(8 * 1500)
    assert abs(len(of(requests, "b")) - 8 * 500) < 3.9 * math.sqrt(8 * 500)


def test_tenants_have_laws_ids_and_streams_of_their_own():
    tenants = (Tenant("a", prompt=Fixed(1)), Tenant("b", output=Fixed(7)), Tenant("c"))
    requests = generate(workload(requests=300, tenants=tenants), 0)
    assert {request.prompt for request in of(requests, "a")} == {1}
    assert {request.output for request in of(requests, "b")} == {7}
    assert [request.id for request in of(requests, "b")][:3] == ["b-1", "b-2", "b-3"]
    assert len({request.id for request in requests}) == 300
    a, c = ([request.output for request in of(requests, name)][:50] for name in "ac")
    assert a != c


def test_a_backlog_arrives_at_once_in_the_proportion_of_the_weights():
    tenants = (Tenant("a", weight=3), Tenant("b"))
    requests = generate(workload(requests=8000, arrivals=AtOnce(), tenants=tenants), 0)
    assert {request.arrival for request in requests} == {0}
    assert abs(len(of(requests, "a")) - 6000) < 3.9 * math.sqrt(8000 * 3 / 16)
    assert 0 < len(of(requests[:40], "b")) < 40


def test_ties_go_to_the_tenant_named_first():
    crowd = (Tenant("z", arrivals=Poisson(1e9)), Tenant("a", arrivals=Poisson(1e9)))
    requests = generate(workload(duration=200, arrivals=None, tenants=crowd), 0)
    keys = [(request.arrival, "za".index(request.tenant)) for request in requests]
    assert len({arrival for arrival, _ in keys}) < len(keys)
    assert keys == sorted(keys)


def digest(requests):
    return hashlib.sha256(repr(requests).encode()).hexdigest()


def test_another_process_draws_the_same_requests():
    program = "from test_trace_workload import digest, generate, spec; print(digest(generate(spec, 12)))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=__file__.rpartition("/")[0],
        env={"PYTHONHASHSEED": "77"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == digest(generate(spec, 12))
    assert digest(generate(spec, 13)) != digest(generate(spec, 12))


spec = workload(
    requests=500,
    tenants=(Tenant("a", weight=3, prompt=Lognormal(300, cv=1)), Tenant("b", arrivals=Gamma(3, 4))),
)


def test_a_stream_is_its_seed_and_its_name():
    first = Stream(1, "a").generator().random()
    assert Stream(1, "a").generator().random() == first
    assert Stream(2, "a").generator().random() != first
    assert Stream(1, "b").generator().random() != first
    assert Stream(1, "a") / "b" == Stream(1, "a/b")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "requests is missing; expected either requests or duration"),
        ({"requests": 1, "duration": 1}, "requests is given beside duration; expected either"),
        ({"requests": 0}, "requests is 0; expected a whole number from 1"),
        ({"duration": -5}, "duration is -5; expected a whole number from 1"),
        ({"duration": 1.5}, "duration is 1.5; expected a whole number from 1"),
        ({"requests": 1, "output": None}, "output is missing; expected a law of lengths"),
        ({"requests": 1, "output": None, "tenants": (Tenant("a"),)}, "tenants.a.output is missing"),
        ({"requests": 1, "arrivals": None}, "arrivals is missing; expected a law such as"),
        ({"duration": 1, "arrivals": AtOnce()}, "duration is given with arrivals at_once; expected requests"),
        ({"requests": 1, "tenants": (Tenant("a"), Tenant("a"))}, "tenants.a is given twice"),
        (
            {"requests": 1, "tenants": (Tenant("a", arrivals=Poisson(1)),)},
            "arrivals is given although every tenant has its own",
        ),
        (
            {"requests": 1, "arrivals": AtOnce(), "tenants": (Tenant("a", arrivals=Poisson(1)),)},
            "tenants.a.arrivals is given beside at_once for all",
        ),
    ],
)
def test_a_contradiction_or_a_gap_is_named(changes, expected):
    with pytest.raises(BadInput) as caught:
        workload(**changes)
    assert str(caught.value).startswith(expected)


@pytest.mark.parametrize(
    ("law", "arguments", "expected"),
    [
        (Poisson, {"rate": 0}, "rate is 0; expected a number from 1e-09 to 1e+09"),
        (Poisson, {"rate": float("inf")}, "rate is inf; expected a number"),
        (Gamma, {"rate": "20", "cv": 1}, "rate is '20'; expected a number"),
        (Gamma, {"rate": 20, "cv": 0}, "cv is 0; expected a number from 0.01 to 100"),
        (Tenant, {"name": "a", "weight": 0}, "weight is 0; expected a number"),
        (Tenant, {"name": "a", "weight": 1, "arrivals": Poisson(1)}, "weight is given beside arrivals"),
        (Tenant, {"name": "a", "arrivals": AtOnce()}, "arrivals is at_once; expected a law with a rate"),
        (Tenant, {"name": ""}, "name is ''; expected text"),
    ],
)
def test_an_impossible_law_or_tenant_names_its_field(law, arguments, expected):
    with pytest.raises(BadInput) as caught:
        law(**arguments)
    assert str(caught.value).startswith(expected)


def test_a_duration_without_an_arrival_is_an_error():
    with pytest.raises(BadInput, match=r"^synthetic: no request arrives within the duration of 5 ns$"):
        generate(workload(duration=5, arrivals=Poisson(1e-3)), 0)


def test_requests_beyond_the_end_of_time_are_an_error():
    with pytest.raises(BadInput, match=r"^synthetic.requests is 50; only \d+ arrive in 146 years$"):
        generate(workload(requests=50, arrivals=Poisson(1e-9)), 0)
