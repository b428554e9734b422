"""The token budget: chunks, whole prompts, and what a sequence does that gets nothing."""

from dataclasses import dataclass

import pytest
from sim_stories import Recorder, booked, chunks, engine, job, run, times, values

from sim.accounting.frames import requests_frame, steps_frame
from sim.accounting.metrics import summary
from sim.policy.base import Optimistic
from sim.request import NO_LIMIT


def test_a_prompt_of_ten_under_a_budget_of_four_takes_three_steps():
    log = run([job("a", 2, prompt=10)], engine(slots=1, budget=4))
    assert chunks(log) == [(0, "a", 0, 4), (1, "a", 4, 4), (2, "a", 8, 2)]
    assert times(log, "first_token") == {"a": 3}
    assert times(log, "finished") == {"a": 4}


def test_decodes_come_first_and_the_prompt_gets_the_rest():
    log = run([job("a", 4), job("b", 2, prompt=10)], engine(slots=2, budget=4))
    # a's prompt and then its decodes take 1 of 4; when a has ended b has the budget to itself.
    assert chunks(log) == [(0, "a", 0, 1), (0, "b", 0, 3), (1, "b", 3, 3), (2, "b", 6, 3), (3, "b", 9, 1)]
    assert times(log, "first_token") == {"a": 1, "b": 4}
    assert times(log, "finished") == {"a": 4, "b": 5}


def test_the_chunks_of_a_prompt_cost_what_they_attend_to():
    # 2 x sum of n (start + n / 2): 4 x 4 = 16; 4 x (2 x 4 + 4) = 48; 2 x (2 x 8 + 2) = 36.
    # Then it decodes its second token: its first attends to the 10 positions computed.
    cost = Recorder()
    run([job("a", 2, prompt=10)], engine(slots=1, budget=4, page_size=4), cost, macro=False)
    assert cost.seen("chunks", "chunk_tokens", "double_work", "decodes", "context", "pages") == [
        (1, 4, 16, 0, 0, 1),
        (1, 4, 48, 0, 0, 2),
        (1, 2, 36, 0, 0, 3),
        (0, 0, 0, 1, 10, 3),
    ]


def test_a_whole_prompt_waits_for_a_step_that_takes_it_whole():
    # a's prompt leaves 3 of 8; b's 6 fit beside a's decode in the next step. c would fit at once but is behind b.
    requests = [job("a", 3, prompt=5), job("b", 1, prompt=6), job("c", 1)]
    log = run(requests, engine(slots=3, budget=8, chunked=False))
    assert chunks(log) == [(0, "a", 0, 5), (1, "b", 0, 6), (1, "c", 0, 1)]
    assert times(log, "admitted") == {"a": 0, "b": 1, "c": 1}
    assert booked(summary(log)) == {"prefill": 3, "decode": 2, "no_budget": 2, "no_demand": 2}


def test_a_whole_prompt_above_the_budget_is_rejected_and_those_behind_it_run():
    log = run([job("a", 2, prompt=9), job("b", 2, prompt=8)], engine(slots=1, budget=8, chunked=False))
    assert times(log, "rejected") == {"a": 0}
    assert times(log, "finished") == {"b": 2}
    found = summary(log)
    assert found["rejections"] == {"prompt exceeds the token budget": 1}
    assert found["requests"] == {
        "injected": 2,
        "finished": 1,
        "rejected": 1,
        "timed_out": 0,
        "cancelled": 0,
        "waiting": 0,
        "running": 0,
    }


def test_with_chunks_no_prompt_is_too_long_for_the_budget():
    log = run([job("a", 1, prompt=9)], engine(slots=1, budget=8))
    assert times(log, "finished") == {"a": 2}


def test_a_recomputation_above_the_budget_is_cut_even_among_whole_prompts():
    # Pages of 1, 12 of them, whole prompts within 6. a may come to hold 5 + 8 - 1 = 12, b 4 + 6 - 1 = 9.
    # a 5, [b waits: 1 left] | a 6, b 4 | a 7, b 5: 12 held. | a needs one: b, with 5 computed and 6 known,
    # leaves. a alone: 8 to 12, its eighth token at 8. b then recomputes 6 <= 6 whole.
    requests = [job("a", 8, prompt=5), job("b", 6, prompt=4)]
    log = run(requests, engine(slots=2, budget=6, pages=12, page_size=1, chunked=False))
    assert values(log, "preempted") == [("b", 5)]
    assert chunks(log) == [(0, "a", 0, 5), (1, "b", 0, 4), (8, "b", 0, 6)]
    # With a budget of 5 its 6 known tokens can never be taken whole, and it must not wait for ever.
    log = run(requests, engine(slots=2, budget=5, pages=12, page_size=1, chunked=False))
    assert values(log, "preempted") == [("b", 5)]
    assert chunks(log) == [(0, "a", 0, 5), (1, "b", 0, 4), (8, "b", 0, 5), (9, "b", 5, 1)]
    assert times(log, "finished") == {"a": 8, "b": 13}


@dataclass(frozen=True)
class TheSecond:
    """The second of the running must go, the only one if there is no other."""

    def choose(self, running, step):
        return list(running.values())[:2][-1]


def test_the_pass_stops_at_a_victim_that_is_the_sequence_itself():
    # a (1 + 1 positions a page of 2) and c never need a page in step 1; b, with its page full, does, and is the
    # victim: the pass over the running ones stops, so c gets nothing in this step and its second token a step late.
    # Pages of 2, 3 of them: a prompt 1, b prompt 2, c prompt 1.
    requests = [job("a", 2, prompt=1), job("b", 2, prompt=2), job("c", 2, prompt=1)]
    log = run(requests, engine(slots=3, pages=3, page_size=2, victim=TheSecond()))
    assert values(log, "preempted") == [("b", 2)]
    # Step 2: a has ended; c decodes and ends; b is back with its 3 known tokens.
    assert values(log, "resumed") == [("c", 0), ("b", 0)]
    assert times(log, "finished") == {"a": 2, "c": 3, "b": 3}
    assert steps_frame(log).no_budget.tolist() == [0, 1, 0]
    assert booked(summary(log)) == {
        "prefill": 3,
        "decode": 2,
        "recomputed": 1,
        "no_budget": 1,
        "no_memory": 1,
        "no_demand": 1,
    }
    gaps = requests_frame(log).set_index("id").max_itl_s
    assert gaps.to_dict() == pytest.approx({"a": 1e-9, "b": 2e-9, "c": 2e-9})


def test_how_much_of_one_prompt_a_step_computes_where_several_are_present():
    # Running and waiting ones are present. One alone has no limit; where the limit adapts it is an equal share of the
    # 20 tokens of a step, if that is more.
    limits = {}
    for settings in ({}, {"chunk_limit": 3}, {"chunk_limit": 3, "chunk_limit_adapts": True}):
        scheduler = engine(slots=2, budget=20, **settings)
        found = [scheduler.state.chunk_limit()]
        for number in range(10):
            scheduler.submit(job(str(number), 9), 0)
            found.append(scheduler.state.chunk_limit())
        scheduler.commit(scheduler.plan(0), 1)
        assert scheduler.state.chunk_limit() == found[-1]
        limits[len(settings)] = found
    assert limits[0] == [NO_LIMIT] * 11
    assert limits[1] == [NO_LIMIT] * 2 + [3] * 9
    assert limits[2] == [NO_LIMIT] * 2 + [10, 6, 5, 4, 3, 3, 3, 3, 3]


def test_pages_are_counted_for_what_each_prompt_gets():
    # 5 tokens a step, 4 of one prompt, 3 pages of 4. After step 0 a has 4 positions and b 1. In step 1 a has 1 to
    # come and b gets the other 4: each begins a page, and one is free. a takes it, and b leaves.
    rule = Optimistic(whole=False)
    scheduler = engine(slots=2, budget=5, pages=3, page_size=4, chunk_limit=4, admission=rule)
    log = run([job("a", 1, prompt=5), job("b", 1, prompt=9)], scheduler)
    assert chunks(log)[:3] == [(0, "a", 0, 4), (0, "b", 0, 1), (1, "a", 4, 1)]
    assert values(log, "preempted") == [("b", 1)]
