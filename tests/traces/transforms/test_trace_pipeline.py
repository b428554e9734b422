"""Transforms, one by one and as a scenario lists them."""

import math
from collections import Counter

import pytest

from sim.request import SECOND, Request
from traces import BadInput
from traces.synthetic import Fixed, Lognormal, Poisson, Stream, Synthetic, generate
from traces.transforms import operations, pipeline

STREAM = Stream(3, "test")


def at(*arrivals):
    return [
        Request(str(number), arrival, prompt=10 * number, output=number, tenant="t", declared=number + 5)
        for number, arrival in enumerate(arrivals, start=1)
    ]


def arrivals(requests):
    return [request.arrival for request in requests]


def ids(requests):
    return [request.id for request in requests]


def many(n=4000):
    return generate(
        Synthetic(requests=n, arrivals=Poisson(20), prompt=Lognormal(300, cv=1), output=Lognormal(90, cv=1)), 0
    )


def test_a_rate_is_set_by_stretching_time():
    assert arrivals(operations.rate(at(0, SECOND, 2 * SECOND), 3)) == [0, SECOND // 2, SECOND]
    assert arrivals(operations.rate(at(0, 1, 3), 10**9)) == [0, 1, 3]


def test_a_warm_up_is_cut_off_and_time_begins_after_it():
    assert [(r.id, r.arrival) for r in operations.warm_up(at(0, 5, 9), 5)] == [("2", 0), ("3", 4)]


def test_thinning_keeps_a_share_and_the_same_ones_of_any_part():
    requests = many()
    kept = operations.thin(requests, 0.3, STREAM)
    assert abs(len(kept) - 1200) < 3.9 * math.sqrt(4000 * 0.3 * 0.7)
    assert operations.thin(requests[2000:], 0.3, STREAM) == [r for r in kept if int(r.id) > 2000]
    assert set(ids(kept)) < set(ids(operations.thin(requests, 0.5, STREAM)))
    assert operations.thin(requests, 1, STREAM) == requests


def test_sampling_keeps_sessions_whole():
    requests = at(*range(600))
    sessions = {request.id: str(int(request.id) // 3) for request in requests if int(request.id) < 500}
    kept = operations.sample(requests, 0.4, STREAM, sessions)
    turns = Counter(sessions[id_] for id_ in ids(kept) if id_ in sessions)
    full = Counter(sessions.values())
    assert all(turns[session] == full[session] for session in turns)
    assert 0 < len(turns) < len(full)
    assert any(id_ not in sessions for id_ in ids(kept))


def test_shuffled_lengths_are_the_same_pairs_at_the_same_arrivals():
    requests = many(500)
    shuffled = operations.shuffle_lengths(requests, STREAM)
    assert [(r.id, r.arrival, r.tenant) for r in shuffled] == [(r.id, r.arrival, r.tenant) for r in requests]
    pairs = [[(r.prompt, r.output, r.max_output) for r in each] for each in (requests, shuffled)]
    assert pairs[0] != pairs[1]
    assert sorted(pairs[0]) == sorted(pairs[1])


def test_caps_bound_prompts_outputs_and_limits():
    capped = operations.cap_lengths(at(0, 1, 2), prompt=20, output=2)
    assert [(r.prompt, r.output, r.max_output) for r in capped] == [(10, 1, 2), (20, 2, 2), (20, 2, 2)]


def test_a_cut_prompt_keeps_its_beginning():
    whole = Request("a", 0, 10, 1, blocks=(1, 2, 3), block_size=4)
    other = Request("b", 0, 12, 1, blocks=(1, 2, 4), block_size=4)
    assert operations.cap_lengths([whole], prompt=8)[0].blocks == (1, 2)
    (first,), (second,) = (operations.cap_lengths([each], prompt=6) for each in (whole, other))
    assert first.blocks == second.blocks
    assert first.blocks[0] == 1
    assert first.blocks[1] != 2
    assert operations.cap_lengths([Request("a", 0, 3, 1, tokens=(7, 8, 9))], prompt=2)[0].tokens == (7, 8)


def test_redrawn_arrivals_have_the_rate_and_nothing_else_changes():
    requests = many()
    drawn = pipeline.apply([{"redraw_arrivals": {"gamma": {"cv": 0.5}}}], requests, 0)
    assert ids(drawn) == ids(requests)
    assert [(r.prompt, r.output) for r in drawn] == [(r.prompt, r.output) for r in requests]
    rate = len(requests) / requests[-1].arrival
    assert abs(drawn[-1].arrival * rate / len(requests) - 1) < 3.9 * 0.5 / math.sqrt(4000)
    slower = pipeline.apply([{"redraw_arrivals": {"poisson": {"rate": 1}}}], requests, 0)
    assert abs(slower[-1].arrival / SECOND / 4000 - 1) < 3.9 / math.sqrt(4000)


def test_jitter_stays_inside_its_width_and_in_order():
    requests = at(0, 0, 0, 3 * SECOND, 3 * SECOND)
    moved = operations.jitter(requests, 3 * SECOND, STREAM)
    assert arrivals(moved) == sorted(arrivals(moved))
    before = {request.id: request.arrival for request in requests}
    assert all(0 <= request.arrival - before[request.id] < 3 * SECOND for request in moved)
    assert len(set(arrivals(moved))) == 5


def test_merged_parts_are_tenants_and_share_nothing():
    a = [Request("1", 0, 4, 1, blocks=(1,), block_size=4), Request("2", 5, 4, 1)]
    b = [Request("1", 0, 4, 1, blocks=(1,), block_size=4), Request("2", 3, 4, 1)]
    both = operations.merge({"x": a, "y": b})
    assert [(r.id, r.tenant, r.arrival) for r in both] == [
        ("x-1", "x", 0),
        ("y-1", "y", 0),
        ("y-2", "y", 3),
        ("x-2", "x", 5),
    ]
    assert both[0].blocks != both[1].blocks


def test_a_merged_part_keeps_the_tenants_that_it_has():
    named = [Request("1", 0, 4, 1, tenant="acme"), Request("2", 5, 4, 1)]
    both = operations.merge({"x": named, "y": [Request("1", 3, 4, 1, tenant="acme")]})
    assert [(r.id, r.tenant) for r in both] == [("x-1", "acme"), ("y-1", "acme"), ("x-2", "x")]


def of_tenant(name, *arrivals, session=""):
    return [
        Request(f"{name}{number}", arrival, 4, 2, tenant=name, session=session, blocks=(1,), block_size=4)
        for number, arrival in enumerate(arrivals, start=1)
    ]


def test_twice_a_tenant_is_twice_its_requests_over_the_same_time_and_no_others():
    acme, other = of_tenant("acme", 0, 40 * SECOND, 100 * SECOND), of_tenant("other", 20 * SECOND)
    both = sorted([*acme, *other], key=lambda request: request.arrival)
    found = pipeline.apply([{"tenants": {"acme": {"times": 2}}}], both, 0)
    when = {request.id: request.arrival for request in found}
    assert arrivals(found) == sorted(arrivals(found))
    assert Counter(request.tenant for request in found) == {"acme": 6, "other": 1}
    assert {request.id: request.arrival for request in both}.items() <= when.items()
    assert 0 < when["acme1#2"] < 40 * SECOND < when["acme2#2"] < 100 * SECOND == when["acme3#2"]
    assert len({request.adapter for request in found}) == 2


def test_a_part_of_a_tenant_is_whole_sessions_and_none_is_no_tenant():
    talks = [request for k in range(400) for request in of_tenant("t", k, k + 1, session=f"s{k}")]
    talks = [
        Request(f"{k}", r.arrival, 4, 2, tenant="t", session=r.session)
        for k, r in enumerate(sorted(talks, key=lambda r: r.arrival))
    ]
    turns = Counter(r.session for r in pipeline.apply([{"tenants": {"t": {"times": 0.5}}}], talks, 0))
    assert set(turns.values()) == {2}
    assert abs(len(turns) - 200) < 5 * 10
    kept = pipeline.apply([{"tenants": {"t": {"times": 0}}}], [*of_tenant("u", 0), *talks], 0)
    assert ids(kept) == ["u1"]


def test_requests_are_repeated_round_after_round_until_a_time():
    asked = at(0, 4, 10)
    found = pipeline.apply([{"repeat_until": 31}], asked, 0)
    assert arrivals(found) == [0, 4, 10, 15, 19, 25, 30]
    assert ids(found)[-1] == "1#3"


def test_a_list_is_applied_in_its_own_order():
    requests = at(*(k * SECOND for k in range(10)))
    cut_first = pipeline.apply([{"first": 4}, {"warm_up": 2 * SECOND}, {"scale_rate": 2}], requests, 0)
    cut_last = pipeline.apply([{"scale_rate": 2}, {"warm_up": 2 * SECOND}, {"first": 4}], requests, 0)
    assert [(r.id, r.arrival) for r in cut_first] == [("3", 0), ("4", SECOND // 2)]
    assert [(r.id, r.arrival) for r in cut_last] == [(str(k), (k - 5) * SECOND // 2) for k in (5, 6, 7, 8)]


def test_another_entry_does_not_change_what_is_drawn():
    requests = many(300)
    alone = pipeline.apply([{"thin": 0.5}], requests, 7)
    after = pipeline.apply(["shuffle_lengths", {"thin": 0.5}], requests, 7)
    assert ids(after) == ids(alone)
    twice = pipeline.apply([{"thin": 0.5}, {"thin": 0.5}], requests, 7)
    assert set(ids(twice)) < set(ids(alone))
    assert ids(pipeline.apply([{"thin": 0.5}], requests, 8)) != ids(alone)


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ("first", "transforms is 'first'; expected a list such as"),
        ([{"frist": 3}], "transforms.0.frist: unknown transform; did you mean first?"),
        ([{"first": 3, "rate": 2}], "transforms.0 is {'first': 3, 'rate': 2}; expected one transform"),
        ([{"first": 3}, 5], "transforms.1 is 5; expected one transform"),
        ([{"first": 0}], "transforms.0.first is 0; expected a whole number from 1"),
        ([{"between": 5}], "transforms.0.between is 5; expected a start and an end"),
        ([{"between": [5, 1]}], "transforms.0.between.end is 1 ns; expected later than"),
        ([{"rate": 0}], "transforms.0.rate is 0; expected a number from"),
        ([{"warm_up": 9}], "transforms.0.warm_up: no request arrives at 9 ns or later"),
        ([{"thin": 0}], "transforms.0.thin: no request is left of 3"),
        ([{"sample": 2}], "transforms.0.sample is 2; expected a number from 0 to 1"),
        ([{"shuffle_lengths": 3}], "transforms.0.shuffle_lengths is 3; expected no options"),
        ([{"cap_lengths": 3}], "transforms.0.cap_lengths is 3; expected such as"),
        ([{"cap_lengths": {}}], "transforms.0.cap_lengths.prompt is missing; expected prompt, output or both"),
        ([{"cap_lengths": {"promt": 3}}], "transforms.0.cap_lengths.promt: unknown key; did you mean prompt?"),
        ([{"redraw_arrivals": "at_once"}], "transforms.0.redraw_arrivals is at_once; expected a law with a rate"),
        ([{"redraw_arrivals": "poison"}], "transforms.0.redraw_arrivals.poison: unknown law; did you mean poisson?"),
        ([{"redraw_arrivals": {"gamma": {}}}], "transforms.0.redraw_arrivals.gamma.cv is missing"),
        ([{"tenants": 2}], "transforms.0.tenants is 2; expected such as {acme: {times: 2}}"),
        ([{"tenants": {"t": 2}}], "transforms.0.tenants.t is 2; expected such as {times: 2}"),
        ([{"tenants": {"t": {"times": 2, "of": 1}}}], "transforms.0.tenants.t.of: unknown key; did you mean times?"),
        ([{"tenants": {"s": {"times": 2}}}], "transforms.0.tenants.s: no request of this tenant; did you mean t?"),
        ([{"tenants": {"t": {"times": -1}}}], "transforms.0.tenants.t.times is -1; expected a number from 0"),
        ([{"tenants": {"t": {"times": 0}}}], "transforms.0.tenants: no request is left of 3"),
        ([{"repeat_until": 0}], "transforms.0.repeat_until is 0; expected a whole number from 1"),
        ([{"jitter": 0}], "transforms.0.jitter is 0; expected a whole number from 1"),
    ],
)
def test_what_is_wrong_is_named_by_its_place(entries, expected):
    with pytest.raises(BadInput) as caught:
        pipeline.apply(entries, at(0, 1, 2), 0)
    assert str(caught.value).startswith(expected)


def test_requests_that_arrive_at_once_have_no_rate():
    with pytest.raises(BadInput, match=r"^transforms\.0\.rate: all 2 requests arrive at once; they have no rate$"):
        pipeline.apply([{"rate": 5}], at(4, 4), 0)


def test_one_token_outputs_stay():
    spec = Synthetic(requests=5, arrivals=Poisson(1), output=Fixed(1))
    assert operations.cap_lengths(generate(spec, 0), output=1) == generate(spec, 0)
