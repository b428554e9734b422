"""Requests to requests: exact division of time, prefixes and slices."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.request import Request
from traces import BadInput
from traces.synthetic.streams import Stream
from traces.transforms.operations import between, first, resample, scale_rate


def at(*arrivals):
    return [
        Request(str(number), arrival, prompt=number, output=2, tenant="t", declared=5)
        for number, arrival in enumerate(arrivals, start=1)
    ]


def arrivals(requests):
    return [request.arrival for request in requests]


sorted_arrivals = st.lists(st.integers(0, 10**14), min_size=1, max_size=30).map(lambda times: at(*sorted(times)))
factors = st.one_of(st.integers(1, 10**6), st.floats(1e-3, 1e6))


def test_twice_the_rate_halves_every_arrival_and_halves_round_up():
    assert arrivals(scale_rate(at(0, 1, 2, 3, 10), 2)) == [0, 1, 1, 2, 5]


def test_a_factor_is_the_decimal_it_is_written_as():
    assert arrivals(scale_rate(at(11 * 10**17), 1.1)) == [10**18]
    assert arrivals(scale_rate(at(1, 3), 0.1)) == [10, 30]


def test_only_arrivals_change():
    (scaled,) = scale_rate(at(8), 4)
    (sliced,) = between(at(8), 6, 9)
    assert scaled == Request("1", 2, prompt=1, output=2, tenant="t", declared=5)
    assert sliced == Request("1", 2, prompt=1, output=2, tenant="t", declared=5)


@given(sorted_arrivals, factors)
def test_scaled_arrivals_are_within_half_a_nanosecond_and_in_order(requests, factor):
    scaled = scale_rate(requests, factor)
    assert arrivals(scaled) == sorted(arrivals(scaled))
    for before, after in zip(requests, scaled, strict=True):
        exact = before.arrival / Fraction(str(factor))
        assert -Fraction(1, 2) < after.arrival - exact <= Fraction(1, 2)


@given(sorted_arrivals, st.integers(1, 1000))
def test_slowing_down_and_speeding_up_again_changes_nothing(requests, factor):
    assert scale_rate(scale_rate(requests, Fraction(1, factor)), factor) == requests


@given(sorted_arrivals, st.integers(1, 40))
def test_the_first_n_are_a_prefix(requests, n):
    assert first(requests, n) == requests[:n]


@given(sorted_arrivals, st.lists(st.integers(0, 10**14), min_size=2, max_size=2, unique=True).map(sorted))
def test_slices_that_meet_hold_every_request_once(requests, cuts):
    spans = [(0, cuts[0]), (cuts[0], cuts[1]), (cuts[1], 10**14 + 1)]
    put_back = []
    for start, end in spans:
        if any(start <= request.arrival < end for request in requests):
            part = between(requests, start, end)
            assert all(0 <= request.arrival < end - start for request in part)
            put_back += [(request.id, request.arrival + start) for request in part]
    assert put_back == [(request.id, request.arrival) for request in requests]


def test_a_slice_holds_its_start_and_not_its_end():
    assert [(request.id, request.arrival) for request in between(at(0, 5, 9, 10), 5, 10)] == [
        ("2", 0),
        ("3", 4),
    ]


@pytest.mark.parametrize("factor", [0, -1, float("nan"), float("inf"), "2", True, None, 1e-12, 10**400])
def test_an_impossible_factor_is_refused(factor):
    with pytest.raises(BadInput, match=r"^scale_rate is .*; expected a number from 1e-09 to 1e\+09$"):
        scale_rate(at(1), factor)


def test_an_arrival_past_the_end_of_time_is_refused():
    with pytest.raises(BadInput, match=r"^scale_rate is 1e-09; the last arrival would be after"):
        scale_rate(at(0, 10**10), 1e-9)


@pytest.mark.parametrize("n", [0, -1, 1.0, True, "3", None])
def test_an_impossible_number_is_refused(n):
    with pytest.raises(BadInput, match=r"^first is .*; expected a whole number from 1 to"):
        first(at(1), n)


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (-1, 5, "between.start is -1; expected a whole number from 0"),
        (0, 1.5, "between.end is 1.5; expected a whole number from 0"),
        (5, 5, "between.end is 5 ns; expected later than between.start, 5 ns"),
        (6, 9, "between: no request arrives from 6 ns to before 9 ns"),
    ],
)
def test_an_impossible_or_empty_slice_is_refused(start, end, expected):
    with pytest.raises(BadInput) as caught:
        between(at(0, 5, 9), start, end)
    assert str(caught.value).startswith(expected)


def test_nothing_has_no_first():
    with pytest.raises(BadInput, match=r"^first: no request to take$"):
        first([], 3)


def test_resampling_draws_stretches_that_keep_together_what_lies_together():
    requests = at(*(1000 * burst + place for burst in range(20) for place in range(3)))
    drawn = resample(requests, 1000, Stream(5, "resample"))
    assert arrivals(drawn) == sorted(arrivals(drawn))
    assert len({request.id for request in drawn}) == len(drawn)
    # A stretch of one period holds one whole burst, wherever it begins, but for one that is cut in two.
    assert 3 * 19 - 3 <= len(drawn) <= 3 * 19
    assert {request.prompt for request in drawn} < {request.prompt for request in requests}
    assert resample(requests, 1000, Stream(5, "resample")) == drawn
    assert resample(requests, 1000, Stream(6, "resample")) != drawn


def test_a_stretch_as_long_as_all_is_all_turned_round():
    requests = at(0, 10, 20, 30)
    drawn = resample(requests, 10**6, Stream(1, "resample"))
    gaps = [later - earlier for earlier, later in pairwise(arrivals(drawn))]
    assert sorted(request.prompt for request in drawn) == [1, 2, 3, 4]
    assert all(gap in (10, 1) for gap in gaps)


def test_every_request_is_as_likely_as_any_other():
    requests = at(*range(0, 1000, 10))
    counts = Counter(request.prompt for seed in range(200) for request in resample(requests, 100, Stream(seed, "r")))
    assert set(counts) == set(range(1, 101))
    # Each is in a stretch with probability 0.1, ten stretches, 200 draws.
    assert all(150 < count < 260 for count in counts.values())
    assert min(counts[place] for place in (1, 2, 99, 100)) > 150


def test_a_session_in_two_stretches_is_two():
    one = [replace(request, session="s", think=5) for request in at(0, 10, 20, 30)]
    drawn = resample(one, 10, Stream(3, "resample"))
    by_stretch = {request.id.partition("#")[2] for request in drawn}
    assert {request.session for request in drawn} == {f"s#{stretch}" for stretch in by_stretch}
    assert len(by_stretch) > 1
    assert {request.session for request in resample(at(0, 10), 10, Stream(3, "resample"))} == {at(0)[0].session}
