"""Admission by peak: everyone is taken to reach its maximum and to leave then. And admitting every few steps."""

from __future__ import annotations

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from sim_stories import engine, job, run, times

from policies.registry import build
from sim.accounting.metrics import summary
from sim.cost.forms import Affine, Unit
from sim.policy.base import Optimistic
from sim.policy.peak import Peak
from sim.request import Patience, Request


def test_a_newcomer_enters_when_the_others_will_have_left_before_it_grows():
    # Pages of 1. Each may come to hold 10. b, j steps behind a, holds 10 - j when a has its last token: with 15 pages
    # it enters at step 5, with 20 at once, with 11 at step 9, with 10 when a has left.
    both = [job("a", 10), job("b", 10)]
    for pages, entered in ((20, 0), (19, 10), (15, 50), (11, 90), (10, 100)):
        log = run(both, engine(2, pages=pages, page_size=1, admission=Peak()), Unit(10))
        assert times(log, "admitted") == {"a": 0, "b": entered}, pages
        assert not summary(log)["preemptions"]


def test_the_peak_need_not_be_at_the_first_end():
    # a may hold 3, b 12, c 12, all from step 0: 9 when a ends, 24 when b and c do.
    three = [job("a", 3), job("b", 12), job("c", 12)]
    log = run(three, engine(3, pages=23, page_size=1, admission=Peak()))
    assert times(log, "admitted") == {"a": 0, "b": 0, "c": 1}


def test_whole_pages_are_counted():
    # In pages of 4: both 2 positions at the end of a, 1 page each; then b alone has 5, 2 pages.
    log = run([job("a", 2), job("b", 5)], engine(2, pages=2, page_size=4, admission=Peak()))
    assert times(log, "admitted") == {"a": 0, "b": 0}


def test_who_ends_before_its_maximum_makes_room():
    early = [job("a", 2, max_output=10), job("b", 10)]
    log = run(early, engine(2, pages=11, page_size=1, admission=Peak()))
    assert times(log, "admitted") == {"a": 0, "b": 2}


@pytest.mark.parametrize("depth", [1, 2])
def test_who_has_its_last_token_counts_until_its_pages_are_free(depth):
    # Pages of 1, 5 of them. a holds 1, 2 and 3 in the first three plans; at depth 2 its 3 in a fourth too, made while
    # the step of its last token runs. b holds one more in every plan. At depth 1 the second plan admits it, at time
    # 1: 3 and 2 in the third. At depth 2 it is the third, at time 1 too: 3 and 2 in the fourth.
    log = run([job("a", 3), job("b", 5)], engine(2, pages=5, page_size=1, admission=Peak(), depth=depth))
    assert times(log, "admitted") == {"a": 0, "b": 1}
    assert not summary(log)["preemptions"]


def test_who_is_behind_for_want_of_budget_is_taken_to_stay():
    # b's prompt of 9 takes 3 steps of at most 3 tokens beside a: it ends in the fourth, not the second. Then it holds
    # 10. It is taken to stay to the end of a, which holds 11 then: with 20 pages it has to wait for a's last step, in
    # which it holds no more than 9.
    for pages, entered in ((21, 0), (20, 9)):
        log = run([job("a", 10, prompt=2), job("b", 2, prompt=9)], engine(2, 4, pages, 1, admission=Peak()))
        assert times(log, "admitted")["b"] == entered
        assert not summary(log)["preemptions"]


@given(
    sizes=st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40), st.integers(0, 30)), min_size=2, max_size=12),
    spare=st.integers(0, 20),
    page_size=st.sampled_from([1, 4]),
    slots=st.sampled_from([2, 3, 5]),
    budget=st.sampled_from([3, 20, 10**6]),
    depth=st.sampled_from([1, 2]),
    modes=st.sampled_from([{}, {"chunk_limit": 5}, {"max_model_len": 50}]),
)
def test_outputs_that_reach_their_maximum_are_never_preempted(sizes, spare, page_size, slots, budget, depth, modes):
    arrival, requests = 0, []
    for number, (prompt, output, gap) in enumerate(sizes):
        arrival += gap
        requests.append(job(str(number), output, prompt, arrival))
    pages = max(-(-(r.prompt + r.output) // page_size) for r in requests) + spare
    scheduler = engine(slots, budget, pages, page_size, admission=Peak(), depth=depth, **modes)
    log = run(requests, scheduler, Affine(base=5, per_sequence=0.7))
    event(f"somebody had to wait: {any(entered > 0 for entered in times(log, 'admitted').values())}")
    assert not summary(log)["preemptions"]


def test_so_many_steps_lie_between_two_that_admit():
    # a enters at 0; b comes at 1 and enters at 4, with c; d, which comes at 5, at 8; e at once, for nobody runs.
    asked = [
        job("a", 20),
        job("b", 2, arrival=1),
        job("c", 2, arrival=3),
        job("d", 2, arrival=5),
        job("e", 5, arrival=60),
    ]
    log = run(asked, engine(4, admit_every=4))
    assert times(log, "admitted") == {"a": 0, "b": 4, "c": 4, "d": 8, "e": 60}
    assert summary(log)["slot_steps"]["limited"] == 3 + 1 + 3
    with pytest.raises(ValueError, match="admit_every is 0"):
        engine(4, admit_every=0)


@given(
    sizes=st.lists(st.tuples(st.integers(1, 30), st.integers(1, 60), st.integers(0, 90)), min_size=1, max_size=25),
    spare=st.integers(0, 60),
    page_size=st.sampled_from([1, 4, 16]),
    slots=st.sampled_from([2, 4, 16]),
    policy=st.sampled_from([("fcfs", {}), ("sjf", {}), ("vtc", {}), ("srpt", {"preemptive": True})]),
    admit_every=st.sampled_from([1, 2, 10]),
    by_peak=st.booleans(),
    patience=st.sampled_from([{}, {"cancel_after": 90}, {"queue_timeout": 40}, {"cancel_tokens": 3}]),
    modes=st.sampled_from([{}, {"depth": 2}, {"evict": "after"}, {"swap": True}]),
)
def test_macro_steps_stay_exact_and_the_peak_is_never_exceeded(
    sizes, spare, page_size, slots, policy, admit_every, by_peak, patience, modes
):
    arrival, requests = 0, []
    for number, (prompt, output, gap) in enumerate(sizes):
        arrival += gap
        limits = patience if number % 3 == 0 else {}
        requests.append(
            Request(str(number), arrival, prompt, output, "ab"[number % 2], declared=60, patience=Patience(**limits))
        )
    pages = max(-(-(r.prompt + r.max_output) // page_size) for r in requests) + spare
    cost = Affine(base=5, per_sequence=0.7, per_context_token=0.13, per_prefill_token=1.1)

    def log(macro):
        modes_of_it = modes | {"admit_every": admit_every, "order": build(*policy, 3)}
        rule = Peak() if by_peak else Optimistic()
        return run(requests, engine(slots, 64, pages, page_size, admission=rule, **modes_of_it), cost, macro=macro)

    found = log(True)
    assert found.sha256() == log(False).sha256()
    event(f"longer runs: {len(found.run_table()['steps']) < found.steps}")
    if by_peak and policy[0] != "srpt":
        assert not summary(found)["preemptions"]
