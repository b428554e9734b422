"""Slots: who gets one when, what a freed one is worth, and what closed batches cost."""

from heapq import heapify, heapreplace

import pytest
from sim_stories import Recorder, booked, engine, happenings, job, jobs, run, static_engine, times, values

from policies.sjf import ShortestJobFirst
from sim.accounting.frames import steps_frame
from sim.accounting.metrics import summary
from sim.cost.forms import Unit
from sim.engine.config import EngineConfig
from sim.engine.static import StaticScheduler
from sim.memory.pool import PagePool
from sim.policy.base import Optimistic, Policy

EIGHT = (5, 8, 6, 120, 7, 9, 6, 11)


@pytest.mark.parametrize("output", [1, 2, 7, 300])
def test_n_output_tokens_take_n_steps(output):
    log = run(jobs(a=output), engine(slots=1))
    assert log.steps == output
    assert times(log, "finished") == {"a": output}


def test_a_freed_slot_goes_to_the_next_in_line_at_once():
    log = run(jobs(a=2, b=4, c=1), engine(slots=2))
    assert times(log, "finished") == {"a": 2, "b": 4, "c": 3}
    assert times(log, "admitted") == {"a": 0, "b": 0, "c": 2}
    assert values(log, "released") == [("a", 1), ("c", 1), ("b", 1)]  # nothing was to come of them


def test_a_closed_batch_makes_the_next_in_line_wait_for_its_slowest():
    log = run(jobs(a=2, b=4, c=1), static_engine(slots=2))
    assert times(log, "finished") == {"a": 2, "b": 4, "c": 5}
    assert times(log, "released") == {"a": 4, "b": 4, "c": 5}


def test_eight_outputs_in_one_closed_batch():
    # 120 steps of 8 slots are bought; the outputs add up to 172; 172 / 960 = 0.179.
    log = run(jobs(**dict(zip("abcdefgh", EIGHT, strict=True))), static_engine(slots=8))
    found = summary(log)
    assert found["steps"] == 120
    assert found["slot_steps"]["bought"] == 960
    assert found["slot_steps"]["prefill"] + found["slot_steps"]["decode"] == 172
    assert booked(found) == {"prefill": 8, "decode": 164, "held": 960 - 172}
    assert found["occupancy"] == pytest.approx(172 / 960)
    assert round(found["occupancy"], 3) == 0.179
    assert found["tokens_per_slot_step"] == pytest.approx(172 / 960)


def test_a_backlog_that_fits_leaves_no_slot_step_unused():
    # Each slot is followed up by a job of 120 less its first output: all eight end with step 120.
    backlog = [120 - output for output in sorted(EIGHT) if output < 120]
    requests = [job(str(place), output) for place, output in enumerate((*EIGHT, *backlog))]
    log = run(requests, engine(slots=8))
    found = summary(log)
    assert found["steps"] == 120
    assert found["slot_steps"]["decode"] + found["slot_steps"]["prefill"] == 960
    assert found["occupancy"] == 1.0


def test_a_long_backlog_is_list_scheduling():
    # Continuous batching of prompts of one token at unit cost gives each job to the slot that is free first.
    outputs = EIGHT * 20
    free_at = [0] * 8
    heapify(free_at)
    for output in outputs:
        heapreplace(free_at, free_at[0] + output)
    log = run([job(str(place), output) for place, output in enumerate(outputs)], engine(slots=8))
    found, steps = summary(log), steps_frame(log)
    assert found["steps"] == max(free_at)
    assert found["occupancy"] == pytest.approx(20 * 172 / (8 * max(free_at)))
    assert ((steps.decode + steps.prefill)[steps.waiting > 0] == 8).all()


def test_what_waits_although_all_slots_are_taken_is_for_want_of_demand_unless_fewer_may_run():
    # No slot is empty, or one, which max_active keeps empty.
    for settings, reason in (({"slots": 1}, "no_demand"), ({"slots": 2, "max_active": 1}, "limited")):
        log = run(jobs(a=3, b=1), engine(**settings))
        assert steps_frame(log).reason.tolist() == [reason] * 3 + ["no_demand"]


def test_completion_then_arrival_then_one_plan_at_one_instant():
    # At 10 ns a ends and b and c arrive: the slot goes to the shorter of the two newcomers, decided once.
    requests = [job("a", 1), job("b", 5, arrival=10), job("c", 2, arrival=10)]
    log = run(requests, engine(slots=1, order=ShortestJobFirst()), Unit(10))
    assert [event[1:] for event in happenings(log) if event.time == 10] == [
        ("first_token", "a"),
        ("finished", "a"),
        ("queued", "b"),
        ("queued", "c"),
        ("released", "a"),
        ("admitted", "c"),
    ]


def test_arrivals_at_one_instant_share_the_first_step():
    log = run(jobs(a=1, b=1, c=1), engine(slots=3))
    assert log.steps == 1
    assert times(log, "finished") == {"a": 1, "b": 1, "c": 1}


def test_an_arrival_during_a_step_waits_for_its_end():
    log = run([job("a", 3), job("b", 1, arrival=14)], engine(slots=2), Unit(10))
    assert times(log, "admitted") == {"a": 0, "b": 20}
    assert times(log, "finished") == {"a": 30, "b": 30}


def test_an_idle_engine_starts_with_the_arrival():
    log = run([job("a", 1), job("b", 1, arrival=14)], engine(slots=1), Unit(10))
    assert times(log, "finished") == {"a": 10, "b": 24}
    # [10, 14) is idle: 4 of 24 ns.
    assert summary(log)["slot_seconds"]["idle"] == pytest.approx(4e-9)


def test_a_closed_batch_ignores_who_comes_later():
    # b waits for the end of the batch although three slots do nothing; the token budget does not bind.
    log = run([job("a", 3, prompt=50), job("b", 1, arrival=1)], static_engine(slots=4))
    assert times(log, "admitted") == {"a": 0, "b": 3}
    assert booked(summary(log)) == {"prefill": 2, "decode": 2, "held": 4 * 4 - 4}


def test_a_closed_batch_is_charged_for_its_padding():
    # Prompts 3 and 5 are padded to 5: 2 x 5 positions, 2 of them padding, and double work 2 x 5 x 5.
    # b ends with the first token, and still its row is charged: context 2 x 5, then 2 x 6.
    cost = Recorder()
    log = run([job("a", 3, prompt=3), job("b", 1, prompt=5)], static_engine(slots=4), cost, macro=False)
    assert cost.seen("decodes", "context", "chunks", "chunk_tokens", "double_work") == [
        (0, 0, 2, 10, 50),
        (2, 10, 0, 0, 0),
        (2, 12, 0, 0, 0),
    ]
    found = summary(log)
    assert found["tokens"]["padding"] == 2
    assert found["tokens"]["computed"] == (3 + 3 - 1) + (5 + 1 - 1)
    assert times(log, "finished") == {"a": 3, "b": 1}
    assert booked(found) == {"prefill": 2, "decode": 2, "held": 8}


def test_a_closed_batch_reserves():
    # 16 positions in pages of 4; a may hold 4 + 6 - 1 = 9 (3 pages), b 4 + 2 - 1 = 5 (2): b has to wait for a.
    log = run([job("a", 6, prompt=4), job("b", 2, prompt=4)], static_engine(slots=2, pages=4, page_size=4))
    assert times(log, "admitted") == {"a": 0, "b": 6}
    policy = Policy(ShortestJobFirst(), Optimistic())
    with pytest.raises(ValueError, match="needs an admission rule that reserves"):
        StaticScheduler(policy, PagePool(1, 1), EngineConfig(slots=1, token_budget=1))


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"slots": 0}, "slots is 0; expected at least 1"),
        ({"slots": 1, "budget": 0}, "token_budget is 0; expected at least 1"),
        ({"slots": 1, "pages": 0}, "pages is 0; expected at least 1"),
        ({"slots": 1, "page_size": 0}, "page_size is 0; expected at least 1"),
        ({"slots": 1, "harvest": "next"}, "harvest 'next' needs evict 'after'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, complaint):
    with pytest.raises(ValueError, match=complaint):
        engine(**settings)


def test_requests_out_of_order_are_refused():
    with pytest.raises(ValueError, match="request b arrives before the one ahead of it"):
        run([job("a", 1, arrival=5), job("b", 1, arrival=4)], engine(slots=1))


@pytest.mark.parametrize(
    ("numbers", "complaint"),
    [
        ({"prompt": 0, "output": 1}, "request x: prompt is 0; expected at least 1 token"),
        ({"prompt": 1, "output": 0}, "request x: output is 0; expected at least 1 token"),
        ({"arrival": -1, "output": 1}, "request x: arrival is -1 ns; expected 0 or later"),
        ({"output": 3, "max_output": 2}, "request x: output is 3; expected at most its own limit 2"),
    ],
)
def test_impossible_requests_are_refused(numbers, complaint):
    with pytest.raises(ValueError, match=complaint):
        job("x", **numbers)
