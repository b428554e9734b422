"""Late eviction: the slot-step it buys for nobody, and the token it loses when harvesting is late too."""

import pytest
from sim_stories import booked, chunks, engine, happenings, job, jobs, run, times, values

from sim.accounting.frames import requests_frame
from sim.accounting.metrics import summary


def late(**settings):
    return engine(evict="after", **settings)


def test_evicting_late_buys_one_slot_step_more_for_each_request():
    # One slot: a's two steps and one held, b's one and one held.
    log = run(jobs(a=2, b=1), late(slots=1))
    assert times(log, "finished") == {"a": 2, "b": 4}
    assert times(log, "released") == {"a": 3, "b": 5}
    found = summary(log)
    assert found["steps"] == 5
    assert booked(found) == {"prefill": 2, "decode": 1, "held": 2}
    # The held steps compute a position each: 1 + 2 - 1, 1 + 1 - 1, and 2.
    assert found["tokens"]["computed"] == 2 + 1 + 2
    assert found["tokens"]["output"] == 3
    assert found["tokens"]["lost"] == 0


def test_evicting_before_buys_none():
    log = run(jobs(a=2, b=1), engine(slots=1))
    assert booked(summary(log)) == {"prefill": 2, "decode": 1}


def test_a_late_slot_goes_to_the_next_in_line_a_step_later():
    log = run(jobs(a=2, b=4, c=1), late(slots=2))
    assert times(log, "admitted")["c"] == 3
    assert times(log, "finished") == {"a": 2, "b": 4, "c": 4}
    # Steps 0 to 4 of two slots: a 2 and 1 held, b 4 and 1 held, c 1 and 1 held.
    assert booked(summary(log)) == {"prefill": 3, "decode": 4, "held": 3}


def test_harvesting_late_loses_the_last_token():
    # a's first token comes at 1; its second, made at 2, is never collected: it ends at 3 with one token.
    log = run(jobs(a=2), late(slots=1, harvest="next"))
    assert happenings(log, "first_token", "lost", "finished") == [
        (1, "first_token", "a"),
        (2, "lost", "a"),
        (3, "finished", "a"),
    ]
    assert values(log, "finished") == [("a", 1)]
    found = summary(log)
    assert (found["tokens"]["output"], found["tokens"]["lost"]) == (1, 1)
    assert found["e2e_s"]["max"] == pytest.approx(3e-9)
    assert booked(found) == {"prefill": 1, "decode": 1, "held": 1}


def test_harvesting_late_loses_the_only_token():
    log = run(jobs(a=1, b=5), late(slots=2, harvest="next"))
    frame = requests_frame(log).set_index("id")
    assert frame.tokens.to_dict() == {"a": 0, "b": 4}
    assert frame.status.tolist() == ["finished", "finished"]
    assert frame.ttft_s.isna().to_dict() == {"a": True, "b": False}
    found = summary(log)
    assert (found["tokens"]["output"], found["tokens"]["lost"]) == (4, 2)
    assert found["ttft_s"]["n"] == 1
    # b's four tokens have three gaps.
    assert found["itl_s"]["n"] == 3


def test_a_rider_that_needs_a_page_gets_one_and_fits():
    # 2 positions and one more for the ride: 3 of pages of 1. With 2 pages it could never run.
    assert times(run(jobs(a=2), late(slots=1, pages=3, page_size=1)), "finished") == {"a": 2}
    assert times(run(jobs(a=2), late(slots=1, pages=2, page_size=1)), "rejected") == {"a": 0}


def test_a_ride_comes_before_a_prompt_that_was_admitted_later():
    # Budget 2. a has its only token at 1 and rides in step 1, before b, whose prompt of 3 gets 1, 1 and 1.
    log = run([job("a", 1), job("b", 1, prompt=3)], late(slots=2, budget=2))
    assert chunks(log) == [
        (0, "a", 0, 1),
        (0, "b", 0, 1),
        (1, "a", 1, 1),
        (1, "b", 1, 1),
        (2, "b", 2, 1),
        (3, "b", 3, 1),
    ]
    assert times(log, "finished") == {"a": 1, "b": 3}
    assert booked(summary(log)) == {"prefill": 4, "held": 2, "no_demand": 2}


def test_a_preempted_rider_just_leaves():
    # 5 pages of 1. a holds 1, 2, 3; b, admitted second, 1, 2 and has its two tokens at 2. In step 2 a takes the
    # fifth page, b's ride finds none: it leaves a step early, finished and not preempted.
    log = run(jobs(a=4, b=2), late(slots=2, pages=5, page_size=1))
    assert times(log, "released")["b"] == 2
    assert not happenings(log, "preempted")
    found = summary(log)
    assert found["preemptions"] == 0
    assert found["requests"]["finished"] == 2
    # Only a buys a step more.
    assert found["slot_steps"]["held"] == 1
    assert found["tokens"]["computed"] == 4 + 2 + 1


class TheFirst:
    """The first admitted must go."""

    def choose(self, running, step):
        return next(iter(running.values()))


def test_a_rider_that_is_driven_out_computes_nothing():
    # 3 pages of 1. In step 1 a rides with the third page, b's second position finds none: the rider leaves, with
    # its pages and the token it had been given, and b gets its page.
    log = run([job("a", 1), job("b", 2)], late(slots=2, pages=3, page_size=1, victim=TheFirst()))
    assert times(log, "released") == {"a": 1, "b": 3}
    assert chunks(log) == [(0, "a", 0, 1), (0, "b", 0, 1), (2, "b", 2, 1)]
    assert booked(summary(log)) == {"prefill": 2, "decode": 1, "held": 1, "no_demand": 2}
