"""Policies by name, and what is said of a name or an option that does not exist."""

import pytest
from sim_stories import engine, happenings, job, jobs, run

from policies.fcfs import FirstComeFirstServed
from policies.max_wait import MaxWait
from policies.registry import POLICIES, build, names, predictor, resolve
from policies.sjf import ShortestJobFirst
from sim.request import SECOND


def test_every_policy_has_a_name_a_line_and_a_size_of_zero():
    assert len(set(names())) == len(names()) >= 19
    for name in names():
        about = POLICIES[name].about
        assert about.endswith(".")
        assert "\n" not in about
        assert len(build(name, {}, seed=0)) == 0
        assert list(build(name, {}, seed=0)) == []


@pytest.mark.parametrize(
    ("name", "kind"),
    [("fcfs", FirstComeFirstServed), ("sjf", ShortestJobFirst), ("fair", MaxWait)],
)
def test_each_builds_a_fresh_order(name, kind):
    first, second = build(name, {}, seed=0), build(name, {}, seed=0)
    assert type(first) is kind
    assert first is not second
    assert len(first) == 0


def test_fair_wraps_sjf_and_caps_at_thirty_seconds_unless_told_otherwise():
    order = build("fair", {}, seed=0)
    assert order.max_wait == 30 * SECOND
    assert isinstance(order.inner.new_queue(), ShortestJobFirst)
    order = build("fair", {"order": "fcfs", "max_wait": 5}, seed=0)
    assert order.max_wait == 5
    assert isinstance(order.inner.new_queue(), FirstComeFirstServed)
    order = build("fair", {"order": {"sjf": {"predict": "prompt"}}}, seed=0)
    assert order.inner.new_queue().predict.name == "prompt"


def test_defaults_are_made_explicit():
    assert resolve("fcfs", {}) == {}
    assert resolve("sjf", {"error": 0.5}) == {"predict": "exact", "error": 0.5}
    assert resolve("fair", {"max_wait": 7}) == {"order": {"sjf": {"predict": "exact", "error": 0}}, "max_wait": 7}


@pytest.mark.parametrize(
    ("name", "options", "used"),
    [
        ("fcfs", {}, None),
        ("sjf", {}, "exact"),
        ("sjf", {"error": 0.5}, "lognormal error 0.5"),
        ("fair", {}, "exact"),
        ("fair", {"order": "fcfs"}, None),
        ("fair", {"order": {"sjf": {"predict": "prompt"}}}, "prompt"),
    ],
)
def test_results_can_name_the_predictor(name, options, used):
    assert predictor(name, options) == used


def test_a_seed_gives_the_same_errors():
    def served(seed):
        requests = [job(str(place), 10 + place) for place in range(30)]
        log = run(requests, engine(slots=1, order=build("sjf", {"error": 2.0}, seed)))
        return [event.who for event in happenings(log, "admitted")]

    assert served(1) == served(1)
    assert served(1) != served(2)


def test_an_error_of_zero_is_exact():
    log = run(jobs(a=3, b=1, c=2), engine(slots=1, order=build("sjf", {"error": 0}, seed=5)))
    assert [event.who for event in happenings(log, "admitted")] == ["b", "c", "a"]


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("fcsf", {}, ["fcsf", "did you mean fcfs?"]),
        ("fairr", {}, ["fairr", "did you mean fair?"]),
        ("zzz", {}, ["zzz", "fcfs, sjf, fair"]),
        ("fcfs", {"error": 1}, ["fcfs", "error"]),
        ("sjf", {"eror": 1}, ["sjf", "eror", "error"]),
        ("sjf", {"error": -1}, ["error is -1"]),
        ("sjf", {"error": "much"}, ["error is 'much'"]),
        ("sjf", {"error": True}, ["error is True"]),
        ("sjf", {"predict": "oracle"}, ["predict is 'oracle'", "known are exact, prompt"]),
        ("sjf", {"predict": "prompt", "error": 0.5}, ["error"]),
        ("fair", {"max_wait": -1}, ["max_wait is -1"]),
        ("fair", {"max_wait": "30s"}, ["max_wait is '30s'"]),
        ("fair", {"max_wait": 1.5}, ["max_wait is 1.5"]),
        ("fair", {"maxwait": 1}, ["maxwait", "max_wait"]),
        ("fair", {"order": "sfj"}, ["sfj", "did you mean sjf?"]),
        ("fair", {"order": 3}, ["3", "name of a policy"]),
        ("fair", {"order": {"sjf": {"predict": "oracle"}}}, ["predict is 'oracle'"]),
        ("fair", {"order": {"sjf": {}, "fcfs": {}}}, ["name of a policy"]),
    ],
)
def test_what_cannot_be_is_said_in_one_line(name, options, words):
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the words are checked below
        build(name, options, seed=0)
    message = str(error.value)
    assert "\n" not in message
    for word in words:
        assert word in message
