"""Earliest deadline and least slack. Steps of 10 ns; "first" holds the only slot up to 50."""

import pytest
from sim_stories import engine, happenings, job, run

from policies.fcfs import FirstComeFirstServed
from policies.registry import build
from sim.cost.forms import Unit

FIRST = job("first", 5, tenant="other")


def served(order, *requests):
    log = run([FIRST, *requests], engine(slots=1, order=order), Unit(10))
    return [event.who for event in happenings(log, "admitted")][1:]


def test_the_earliest_deadline_is_arrival_plus_promise():
    promises = {"within": 1000, "tenants": {"chat": {"within": 100}}}
    requests = [
        job("report", 1, tenant="batch"),  # due at 1000
        job("hello", 9, tenant="chat", arrival=30),  # at 130
        job("bye", 1, tenant="chat", arrival=40),  # at 140
        job("mail", 1, tenant="batch", arrival=45),  # at 1045
    ]
    assert served(build("edf", promises, 0), *requests) == ["hello", "bye", "report", "mail"]


def test_old_ones_of_patient_tenants_go_before_fresh_ones_of_the_hasty():
    promises = {"within": 60, "tenants": {"chat": {"within": 20}}}
    requests = [job("report", 1, tenant="batch"), job("hello", 1, tenant="chat", arrival=45)]  # due at 60 and 65
    assert served(build("edf", promises, 0), *requests) == ["report", "hello"]


def test_one_deadline_for_all_is_first_come_first_served():
    requests = [job(name, output, arrival=at) for at, (name, output) in enumerate({"a": 5, "b": 1, "c": 9}.items())]
    assert served(build("edf", {}, 0), *requests) == served(FirstComeFirstServed(), *requests) == ["a", "b", "c"]


def test_the_least_slack_is_time_left_less_work_left():
    # Due at 101, a token takes 10: a must start by 101 - 2 x 10 = 81, b by 21, c, due at 91, by 81 too.
    slack = build("least_slack", {"within": 100, "tenants": {"hasty": {"within": 90}}, "token_time": 10}, 0)
    requests = [job("a", 2, arrival=1), job("b", 8, arrival=1), job("c", 1, tenant="hasty", arrival=1)]
    assert served(slack, *requests) == ["b", "a", "c"]


def test_what_has_been_generated_is_no_work_left():
    # Two slots and six pages of 1; at 30 "second" is driven out with 3 of its 6 tokens, as "new" waits since 10.
    # Due at 1000 and 1010; at 100 a token "second" must start by 1000 - 300, "new" by 1010 - 400: "new" goes first.
    requests = [job("first", 6), job("second", 6), job("new", 4, arrival=10)]
    order = build("least_slack", {"within": 1000, "token_time": 100}, 0)
    log = run(requests, engine(slots=2, pages=6, page_size=1, order=order), Unit(10))
    assert [event.who for event in happenings(log, "admitted")][:3] == ["first", "second", "new"]
    # At 5 a token: by 985 against 990, "second" first. Had its 3 tokens not counted, it would be 970.
    order = build("least_slack", {"within": 1000, "token_time": 5}, 0)
    log = run(requests, engine(slots=2, pages=6, page_size=1, order=order), Unit(10))
    assert [event.who for event in happenings(log, "admitted")][:3] == ["first", "second", "second"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"within": "1s"}, "within is '1s'; expected a duration"),
        ({"tenants": 5}, "tenants is 5; expected tenants"),
        ({"tenants": {"chat": 5}}, "tenants.chat is 5; expected {within: duration}"),
        ({"tenants": {"chat": {"within": -1}}}, "tenants.chat.within is -1; expected a duration"),
    ],
)
def test_what_is_no_promise_is_refused(options, words):
    for name in ("edf", "least_slack"):
        with pytest.raises(ValueError, match=words):
            build(name, options, 0)
