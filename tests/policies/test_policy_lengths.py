"""Orders by what is left, by the prompt, by the longest, and by lot."""

from statistics import mean

import pytest
from sim_stories import engine, happenings, job, jobs, run, static_engine, times, values

from policies.longest import LongestFirst
from policies.predictors.base import PromptLength
from policies.random_order import RandomOrder
from policies.registry import build
from policies.shortest_prompt import ShortestPrompt
from policies.sjf import ShortestJobFirst
from policies.srpt import ShortestRemaining
from sim.accounting.metrics import summary


def served(log):
    return [event.who for event in happenings(log, "admitted")]


def driven_out(order):
    """Two slots and six pages of one token. "first" and "second" hold three pages each after step 2.

    In step 3 "first" needs a seventh: "second", with 3 of its 6 tokens, is driven out. "new", of 4 tokens, has been
    waiting since 1. In step 4 one page is free: enough for "new", not for the 4 known tokens of "second". "first"
    ends with step 5, and at 6 there are pages for both.
    """
    requests = [job("first", 6), job("second", 6), job("new", 4, arrival=1)]
    return run(requests, engine(slots=2, pages=6, page_size=1, order=order))


def test_what_a_preempted_request_has_already_counts():
    # 3 of 6 remain, and "new" wants 4: "second" goes first, so nobody enters before 6.
    log = driven_out(ShortestRemaining())
    assert [(event.who, event.time) for event in happenings(log, "admitted")][:4] == [
        ("first", 0),
        ("second", 0),
        ("second", 6),
        ("new", 6),
    ]
    assert happenings(log, "preempted")[0][::2] == (3, "second")


def test_the_shortest_job_is_by_all_it_asks():
    # 6 against 4: "new" goes first, at 4 already.
    log = driven_out(ShortestJobFirst())
    assert served(log)[:3] == ["first", "second", "new"]
    assert happenings(log, "admitted")[2].time == 4


def test_the_shortest_remaining_takes_nobody_s_slot():
    log = run([job("long", 10), job("short", 1, arrival=2)], engine(slots=1, order=ShortestRemaining()))
    assert times(log, "finished") == {"long": 10, "short": 11}


def test_preemptive_it_takes_the_slot_of_whoever_has_most_to_come():
    # At 2 "long" has 8 of its 10 to come: "short" takes its slot. At 3 "long" starts over from 3 known tokens; with
    # these computed again in one step it has its third at 4, and 7 more follow.
    requests = [job("long", 10), job("short", 1, arrival=2)]
    log = run(requests, engine(slots=1, order=ShortestRemaining(preemptive=True)))
    assert times(log, "finished") == {"short": 3, "long": 11}
    assert values(log, "preempted") == [("long", 2)]
    assert summary(log)["slot_steps"]["recomputed"] == 1


def test_nobody_is_driven_out_by_as_much_or_for_want_of_pages():
    # "even" wants the 8 tokens that "long" has to come at 2, and waits; at 5 "long" has 5 to come: "fresh" has 4.
    even, fresh = job("even", 8, arrival=2), job("fresh", 4, arrival=5)
    log = run([job("long", 10), even, fresh], engine(slots=1, order=ShortestRemaining(preemptive=True)))
    assert times(log, "finished") == {"fresh": 9, "long": 14, "even": 22}
    # Ten pages of one: at 2 each holds 3, so a prompt of 9 would not fit though "long" left, and it stays. From 4 on
    # there is a slot, and the pages come when "long" has ended.
    wide = [job("long", 9), job("b", 4), job("wide", 1, prompt=9, arrival=2)]
    log = run(wide, engine(slots=2, pages=10, page_size=1, order=ShortestRemaining(preemptive=True)))
    assert times(log, "admitted")["wide"] == 9
    assert not happenings(log, "preempted")


def test_under_a_cap_the_overdue_keep_their_slots():
    order = {"srpt": {"preemptive": True}}
    requests = [job("long", 10), job("short", 2, arrival=3), job("late", 1, arrival=7)]
    # At 3 "long" is in time, so "short" goes first; it is back at 5, and at 7 it is overdue: "late" waits.
    log = run(requests, engine(slots=1, order=build("max_wait", {"max_wait": 6, "order": order}, 0)))
    assert times(log, "finished") == {"short": 5, "long": 12, "late": 13}
    log = run(requests, engine(slots=1, order=build("srpt", {"preemptive": True}, 0)))
    assert times(log, "finished") == {"short": 5, "late": 8, "long": 13}


@pytest.mark.parametrize("name", ["vtc", "drr", "fair", "aging", "tenant_slots", "tenant_rate", "reserved"])
def test_other_wrappers_take_no_preemptive_order(name):
    with pytest.raises(
        ValueError, match=f"{name}.order is preemptive; only max_wait and tenant_quota take such an order"
    ):
        build(name, {"order": {"srpt": {"preemptive": True}}}, 0)


def test_a_static_batch_preempts_nobody():
    with pytest.raises(ValueError, match="static batching needs an order that does not preempt"):
        static_engine(2, order=ShortestRemaining(preemptive=True))


def test_one_that_has_outgrown_its_prediction_is_as_good_as_done():
    # By the prompt, "second" was to have 1 token; it has 3, so -2 remain, before the 1 of "new".
    assert served(driven_out(ShortestRemaining(PromptLength())))[2:4] == ["second", "new"]


def test_the_shortest_prompt_goes_first_whatever_the_output():
    requests = [job("a", 1, prompt=9), job("b", 50, prompt=2), job("c", 3, prompt=5), job("d", 1, prompt=5)]
    assert served(run(requests, engine(slots=1, order=ShortestPrompt()))) == ["b", "c", "d", "a"]


def test_a_preempted_request_counts_with_all_that_is_computed_again():
    # "second" has 1 + 3 tokens to compute again, "new" its prompt of 1.
    assert served(driven_out(ShortestPrompt()))[:3] == ["first", "second", "new"]


def test_the_longest_first_ends_a_batch_early():
    # Two slots: a and b to 1, then c to 3 in order of arrival; c to 2 beside a and b otherwise.
    requests = jobs(a=1, b=1, c=2)
    assert max(times(run(requests, engine(slots=2)), "finished").values()) == 3
    log = run(requests, engine(slots=2, order=LongestFirst()))
    assert served(log) == ["c", "a", "b"]
    assert max(times(log, "finished").values()) == 2


def test_a_lot_is_drawn_once_by_the_name_and_is_nobody_else_s():
    requests = jobs(**{f"r{place}": 2 for place in range(20)})
    everyone = served(run(requests, engine(slots=1, order=RandomOrder(seed=3))))
    assert everyone == served(run(requests, engine(slots=1, order=RandomOrder(seed=3))))
    assert everyone != served(run(requests, engine(slots=1, order=RandomOrder(seed=4))))
    half = served(run(requests[::2], engine(slots=1, order=RandomOrder(seed=3))))
    assert half == [who for who in everyone if who in half]


def test_the_lot_is_fair():
    # The first of three, over 900 seeds: each a third, within 4 standard errors.
    firsts = [
        served(run(jobs(a=1, b=1, c=1), engine(slots=1, order=build("random", {}, seed))))[0] for seed in range(900)
    ]
    for name in "abc":
        assert abs(mean(first == name for first in firsts) - 1 / 3) < 4 * (2 / 9 / 900) ** 0.5
