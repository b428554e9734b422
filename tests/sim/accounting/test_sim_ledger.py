"""The ledger: one story for each row of empty slots, and the same rows in time."""

from array import array

import pytest
from sim_stories import Script, booked, engine, job, jobs, run

from policies.fcfs import FirstComeFirstServed
from policies.routers import RoundRobin
from sim.accounting.frames import steps_frame
from sim.accounting.ledger import (
    ROWS,
    Pages,
    begins,
    cached_at_rest,
    fleet_pages,
    makespan,
    pages,
    peak_pages,
    slot_rows,
    waiting_by_step,
)
from sim.accounting.metrics import summary
from sim.accounting.requests import RequestRecords
from sim.accounting.work.plan_times import planned_by_step
from sim.accounting.work.wasted import decoding, stretches, wasted_stretches
from sim.cost.forms import Unit
from sim.engine.apart.config import ApartConfig
from sim.engine.apart.scheduler import ApartScheduler
from sim.engine.config import EngineConfig
from sim.engine.scheduler import Scheduler
from sim.log.cache_use import CacheUse
from sim.log.events import RUN, EventLog, Kind, Reason
from sim.memory.pool import PagePool
from sim.memory.prefix import PrefixPool
from sim.policy.base import Optimistic, Policy, Reserve
from sim.request import Patience, Request
from sim.service.cluster import simulate_cluster


def test_nobody_wants_the_slot():
    assert booked(summary(run(jobs(a=3), engine(slots=2)))) == {"prefill": 1, "decode": 2, "no_demand": 3}


def test_the_budget_does_not_reach_for_it():
    # a's token is the whole budget for two steps: b waits beside an empty slot, then c does.
    found = summary(run(jobs(a=2, b=1, c=1), engine(slots=2, budget=1)))
    assert booked(found) == {"prefill": 3, "decode": 1, "no_budget": 3, "no_demand": 1}


def test_there_are_no_pages_for_it():
    # a holds all 3 positions of the pool for its 3 steps; then b needs 2 and c 2, one at a time.
    log = run(jobs(a=3, b=2, c=2), engine(slots=2, pages=3, page_size=1, admission=Reserve()))
    assert booked(summary(log)) == {"prefill": 3, "decode": 4, "no_memory": 3 + 2, "no_demand": 2}


def test_only_as_many_slots_are_missed_as_requests_wait():
    # 4 slots; a holds 3 of 3 pages and one waits: one empty slot is for want of memory, two for want of demand.
    log = run(jobs(a=3, b=1), engine(slots=4, pages=3, page_size=1, admission=Reserve()))
    assert booked(summary(log)) == {"prefill": 2, "decode": 2, "no_memory": 3, "no_demand": 3 * 2 + 3}


def test_the_head_of_the_line_blocks_it():
    # 4 positions; a reserves 3. b at the head needs 2, c behind it would fit in the last one.
    log = run(jobs(a=3, b=2, c=1), engine(slots=3, pages=4, page_size=1, admission=Reserve()))
    assert steps_frame(log).reason.tolist() == ["blocked"] * 3 + ["no_demand"] * 2
    assert booked(summary(log)) == {"prefill": 3, "decode": 3, "blocked": 3 * 2, "no_demand": 1 + 2}


class ClosedForTwoSteps(FirstComeFirstServed):
    """Nobody is let in before steps 1 and 2."""

    def head(self, now, step):
        return None if step in (1, 2) else super().head(now, step)

    def next_change(self, now, step):
        return None, (3 - step if step < 3 else None)


@pytest.mark.parametrize("macro", [True, False])
def test_the_policy_keeps_it_empty(macro):
    log = run([job("a", 5), job("b", 1, arrival=1)], engine(slots=2, order=ClosedForTwoSteps()), macro=macro)
    assert steps_frame(log).reason.tolist() == ["no_demand", "limited", "limited", "no_demand", "no_demand"]
    assert booked(summary(log)) == {"prefill": 2, "decode": 4, "limited": 2, "no_demand": 1 + 1}


def test_the_same_rows_in_time():
    # Steps of 2, 3 and 5 ns, then 4 ns idle until b comes, then one of 7: 21 ns of two slots.
    log = run([job("a", 3), job("b", 1, arrival=14)], engine(slots=2), Script(2, 3, 5, 7), macro=False)
    found = summary(log)["slot_seconds"]
    rows = {row: round(time * 1e9) for row, time in found.items() if time}
    assert rows == {"bought": 42, "prefill": 2 + 7, "decode": 8, "no_demand": 2 + 8 + 7, "idle": 8}


def test_an_arrival_in_a_long_run_counts_as_waiting_from_the_next_step_on():
    # Budget 1: a keeps it for 4 steps of 10 ns. b comes at 15 and misses the empty slot in the steps that start
    # at 20 and 30, not in the one that has started.
    log = run([job("a", 4), job("b", 1, arrival=15)], engine(slots=2, budget=1), Script(10, 10, 10, 10, 10), False)
    assert steps_frame(log).waiting.tolist() == [0, 0, 1, 1, 0]
    assert booked(summary(log)) == {"prefill": 2, "decode": 3, "no_budget": 2, "no_demand": 3}


def test_pages_that_can_be_found_stay_cached_while_the_engine_rests():
    # Two equal prompts of two pages, a step of 10 each, at 0 and at 100: from 10 to 100 both pages of the first can
    # be found; the second finds one, computes the other again, and leaves one old page cached for its 10.
    prompt = tuple(range(32))
    requests = [Request(name, arrival, 32, 1, tokens=prompt) for name, arrival in (("a", 0), ("b", 100))]
    policy = Policy(FirstComeFirstServed(), Optimistic())
    scheduler = Scheduler(policy, PrefixPool(pages=10, page_size=16), EngineConfig(slots=1, token_budget=100))
    positions = summary(run(requests, scheduler, Unit(10)))["pages"]["positions"]
    assert positions["cached"] == pytest.approx((90 * 32 + 10 * 16) / 110)
    assert positions["live"] == pytest.approx(20 * 32 / 110)
    assert sum(positions.values()) == pytest.approx(160)


def test_pages_stay_cached_after_the_last_step_of_a_replica_and_before_its_first():
    # Three engines of 10 pages, for 100 ns. a has its 2 pages for 10 ns on the first, which keeps them for the other
    # 90. b decodes on the second to the end. The third has nothing to do until c comes at 60, for 10 ns and 2 of its
    # 10 pages: of the 4 that were warm, 4 are cached for 60, and all while c runs, then 6.
    def replica(warm=()):
        pool = PrefixPool(pages=10, page_size=16)
        pool.warm(warm)
        policy = Policy(FirstComeFirstServed(), Optimistic())
        return Scheduler(policy, pool, EngineConfig(slots=1, token_budget=100)), Unit(10)

    requests = [
        Request("a", 0, 32, 1, tokens=tuple(range(32))),
        Request("b", 0, 1, 10),
        Request("c", 60, 32, 1, tokens=tuple(range(50, 82))),
    ]
    fleet = [replica(), replica(), replica([bytes([page]) for page in range(4)])]
    logs = simulate_cluster(requests, fleet, RoundRobin())
    positions = summary(logs)["pages"]["positions"]
    assert positions["cached"] == pytest.approx(16 * (90 * 2 + 60 * 4 + 10 * 4 + 30 * 6) / 100)
    assert sum(positions.values()) == pytest.approx(3 * 160)


def test_an_engine_without_a_step_has_its_warm_pages_cached():
    pool = PrefixPool(pages=10, page_size=16)
    pool.warm([b"1", b"2"])
    idle = Scheduler(Policy(FirstComeFirstServed(), Optimistic()), pool, EngineConfig(slots=1, token_budget=100))
    logs = simulate_cluster([job("a", 5)], [(engine(slots=1, pages=10), Unit(10)), (idle, Unit(10))], RoundRobin())
    positions = summary(logs)["pages"]["positions"]
    assert positions["cached"] == pytest.approx(32)
    assert sum(positions.values()) == pytest.approx(320)


def test_pages_cached_at_rest_are_counted_from_one_change_to_the_next():
    # An engine that never runs a step: 1 page is warm until 10, 2 are cached until 30, 5 until 40.
    log = EventLog(slots=1, pages=9, page_size=1, on_demand=True, cache=CacheUse())
    log.cache.warm_pages = 1
    log.rest(10, 2)
    log.rest(30, 5)
    assert cached_at_rest(RequestRecords(log), 0, 40) == 10 * 1 + 20 * 2 + 10 * 5


def test_a_stint_is_cut_where_the_decoders_stand_still():
    # In steps 2, 3, 5 and 9 no decoder computes: of 1 to before 7, steps 1, 4 and 6 are left.
    still = [2, 3, 5, 9]
    assert list(decoding(1, 7, still)) == [(1, 2), (4, 5), (6, 7)]
    assert list(decoding(2, 4, still)) == []
    assert list(decoding(4, 6, still)) == [(4, 5)]
    assert list(decoding(6, 9, still)) == [(6, 9)]
    assert list(decoding(3, 10, still)) == [(4, 5), (6, 9)]
    assert list(decoding(0, 3, [])) == [(0, 3)]


def test_what_one_request_was_booked_for():
    # In slots from 0 to 9 and from 12 to 20. A prompt of 5: two chunks, a pause, then it decodes; preempted with 7
    # positions, it computes 7 again in one chunk, decodes on, and is held for its last step.
    request = Request("a", 0, 5, 6)
    stays = [[0, 0, 9], [0, 12, 20]]
    worked = [(1, 2, 0), (3, 4, 3), (4, 6, None), (13, 14, 0), (14, 18, None)]
    assert list(stretches(request, stays, worked, over=True, lost=[(10, 7)])) == [
        ("no_budget", 0, 1),
        ("prefill", 1, 2),
        ("no_budget", 2, 3),
        ("prefill", 3, 4),
        ("decode", 4, 6),
        ("no_budget", 6, 9),
        ("no_budget", 12, 13),
        ("recomputed", 13, 14),
        ("decode", 14, 18),
        ("held", 18, 20),
    ]
    assert list(stretches(request, stays[1:], worked[3:], over=False))[-1] == ("no_budget", 18, 20)


def test_what_another_engine_lost_is_recomputed():
    # Of a prompt of 5 another engine had computed 3: the chunk from 0 does that again, the one from 3 does not.
    request = Request("a", 0, 5, 6)
    worked = [(0, 1, 0), (1, 2, 3)]
    booked = [("recomputed", 0, 1), ("prefill", 1, 2)]
    assert list(stretches(request, [[0, 0, 2]], worked, over=False, lost=[(0, 3)])) == booked
    assert list(stretches(request, [[0, 0, 2]], worked, over=False)) == [("prefill", 0, 1), ("prefill", 1, 2)]


def test_steps_beyond_the_tokens_a_client_waits_for_are_held():
    # Its client waits for 2 tokens of a prompt of 5: its goal is position 6, and a chunk that starts there is late.
    request = Request("a", 0, 5, 6, patience=Patience(cancel_tokens=2))
    worked = [(0, 1, 0), (1, 2, 5), (2, 3, 6)]
    assert list(stretches(request, [[0, 0, 3]], worked, over=True)) == [
        ("prefill", 0, 1),
        ("decode", 1, 2),
        ("held", 2, 3),
    ]
    unlimited = Request("a", 0, 5, 6)
    assert list(stretches(unlimited, [[0, 0, 3]], worked, over=True))[-1] == ("decode", 2, 3)


def test_the_positions_of_a_run_that_goes_on_are_those_of_each_step():
    # Four of 5 pages of 2 are reserved. Four steps: 2, 4, 6, 8 positions are live, in 2, 2, 4, 4 pages.
    records = RequestRecords(run(jobs(a=4, b=4), engine(slots=2, pages=5, page_size=2, admission=Reserve())))
    assert len(records.log.run_table()["steps"]) == 2
    positions = {"live": 20 / 4, "tail": 4 / 4, "reserved": 8 / 4, "cached": 0.0, "free": 2.0}
    assert pages(records, 0, 4) == Pages(5, 4.0, 4, positions)
    # Of 8 ns the engine rests for 4, and holds no page.
    halves = {kind: mean / 2 for kind, mean in positions.items()} | {"free": (2 + 10) / 2}
    assert pages(records, 0, 8) == Pages(5, 2.0, 4, halves)
    # The same engine twice.
    both = {kind: 2 * mean for kind, mean in positions.items()}
    assert fleet_pages([records, records], 0, 4) == Pages(10, 8.0, 8, both)


def test_an_engine_that_never_ran_has_free_pages_only():
    free = {"live": 0.0, "tail": 0.0, "reserved": 0.0, "cached": 0.0, "free": 10.0}
    assert pages(RequestRecords(run([], engine(slots=1, pages=5, page_size=2))), 0, 0) == Pages(5, 0.0, 0, free)


def test_the_pages_of_all_replicas_at_their_fullest():
    # Pages of 1. On the first, 4 pages from 0 to 10; on the second, 3 from 10 to 20, then 6 until 30: 6 at once, as
    # those of the first are free when the others are taken. With 5 from 5 on instead, 9.
    def replica(prompt, *arrivals):
        requests = [job(str(at), 1, prompt=length, arrival=at) for at, length in zip(arrivals, prompt, strict=True)]
        return RequestRecords(run(requests, engine(slots=9, page_size=1), Unit(10)))

    assert peak_pages([replica([4], 0), replica([3, 6], 10, 20)]) == 6
    assert peak_pages([replica([4], 0), replica([5], 5)]) == 9
    assert peak_pages([replica([4], 0), replica([5], 10)]) == 5
    assert fleet_pages([replica([4], 0), replica([5], 5)], 0, 15).peak_used == 9
    assert fleet_pages([replica([4], 0)], 0, 10).peak_used == 4


def test_a_run_lasts_from_the_first_queue_entry_to_the_last_end():
    # a comes at 5 and has 3 steps of 10. The second engine is empty; on the third b comes at 2, and ends at 12.
    def records(*requests):
        return RequestRecords(run(requests, engine(slots=1), Unit(10)))

    fleet = [records(job("a", 3, arrival=5)), records(), records(job("b", 1, arrival=2))]
    assert (begins(fleet), makespan(fleet)) == (2, 33)
    assert (begins(fleet[:1]), makespan(fleet[:1])) == (5, 30)
    assert (begins(fleet[1:2]), makespan(fleet[1:2])) == (0, 0)


def test_the_fullest_instant_is_exact_where_floats_skip_a_nanosecond():
    # 5 pages for the ns from 2^53 on, then 4 on another replica for the next one: as floats both are one instant.
    def replica(pages, arrival):
        scheduler = engine(slots=1, page_size=1)
        return RequestRecords(run([job("a", 1, prompt=pages, arrival=arrival)], scheduler))

    assert peak_pages([replica(5, 2**53), replica(4, 2**53 + 1)]) == 5


def test_time_in_which_an_engine_was_down_is_a_row_of_its_own():
    # Of 40 ns of two slots three steps take 10 each, and for 4 ns the engine was down.
    records = RequestRecords(run(jobs(a=3), engine(slots=2), Unit(10)))
    steps, time = slot_rows(records, 40, down=4)
    assert kept(steps) == {"bought": 6, "decode": 2, "prefill": 1, "no_demand": 3}
    assert kept(time) == {"bought": 80, "decode": 20, "prefill": 10, "no_demand": 30, "idle": 12, "down": 8}
    assert list(slot_rows(records, 40)[1]) == ["bought", *ROWS, "idle"]
    assert slot_rows(records, 40)[1]["idle"] == 20


def kept(rows):
    """The rows that are not zero."""
    return {row: count for row, count in rows.items() if count}


def test_an_empty_slot_and_one_that_gets_nothing_are_in_one_row_where_the_budget_is_the_reason():
    # Two steps of 3 slots: one decodes, one gets nothing, and one is empty although one waits.
    log = EventLog(slots=3, pages=9, page_size=1, on_demand=True)
    log.event(0, Kind.QUEUED, log.add(job("a", 9)))
    row = {"steps": 2, "decode": 1, "no_budget": 1, "waiting": 1, "reason": Reason.NO_BUDGET}
    log.run(tuple((dict.fromkeys(RUN, 0) | row).values()), array("q", [10, 20]), array("q", [0] * 2))
    steps, time = slot_rows(RequestRecords(log), 30)
    assert kept(steps) == {"bought": 6, "decode": 2, "no_budget": 4}
    assert kept(time) == {"bought": 90, "decode": 30, "no_budget": 60}


def test_the_rows_of_one_that_is_cancelled_move_to_wasted():
    # Steps of 2, 3, 5 and 7 ns. a leaves after two of them, in which it computed its prompt and a token.
    requests = [Request("a", 0, 1, 9, patience=Patience(cancel_after=5)), job("b", 4)]
    records = RequestRecords(run(requests, engine(slots=2), Script(2, 3, 5, 7), macro=False))
    steps, time = slot_rows(records, 17)
    assert kept(steps) == {"bought": 8, "decode": 3, "prefill": 1, "wasted": 2, "no_demand": 2}
    assert kept(time) == {"bought": 34, "decode": 15, "prefill": 2, "wasted": 5, "no_demand": 12}
    # If b's work is the wasted one instead, a's stands.
    steps, time = slot_rows(records, 17, ~records.wasted)
    assert kept(steps) == {"bought": 8, "decode": 1, "prefill": 1, "wasted": 4, "no_demand": 2}
    assert kept(time) == {"bought": 34, "decode": 3, "prefill": 2, "wasted": 17, "no_demand": 12}


def three_steps(depth):
    """The log of 3 steps of 10 ns, planned at 0 when two wait. One comes at 10 and one at 15, one leaves at 20."""
    log = EventLog(slots=1, pages=9, page_size=1, on_demand=True, depth=depth)
    for time, kind in (
        (0, Kind.QUEUED),
        (0, Kind.ADMITTED),
        (10, Kind.QUEUED),
        (15, Kind.QUEUED),
        (20, Kind.DEQUEUED),
    ):
        log.event(time, kind, 0)
    row = dict.fromkeys(RUN, 0) | {"steps": 3, "waiting": 2}
    log.run(tuple(row.values()), array("q", [10] * 3), array("q", [0] * 3))
    return RequestRecords(log)


def test_how_many_wait_when_each_step_is_planned():
    # With its start; or, with two steps in flight, with that of the step before, but not before its batch.
    assert planned_by_step(three_steps(1)).tolist() == [0, 10, 20]
    assert waiting_by_step(three_steps(1)).tolist() == [2, 3, 3]
    assert planned_by_step(three_steps(2)).tolist() == [0, 0, 10]
    assert waiting_by_step(three_steps(2)).tolist() == [2, 2, 3]
    assert waiting_by_step(three_steps(1)).dtype == "int64"


def test_a_step_is_not_planned_before_its_batch():
    log = EventLog(slots=1, pages=9, page_size=1, on_demand=True, depth=2)
    for planned in (0, 7):
        row = dict.fromkeys(RUN, 0) | {"planned": planned, "start": planned, "steps": 1}
        log.run(tuple(row.values()), array("q", [5]), array("q", [0]))
    assert planned_by_step(RequestRecords(log)).tolist() == [0, 7]


def worked(request, stays, stints=(), chunks=(), queued=0, preempted=(), released=True, verified=()):
    """The log of a request that its client cancelled, in steps of 10 ns.

    stays, stints  (first, end) in its slot, and decoding
    chunks         (step, start, tokens), and `verified` likewise
    preempted      (time, positions thrown away)
    """
    log = EventLog(slots=1, pages=99, page_size=1, on_demand=True)
    log.event(0, Kind.QUEUED, log.add(request), queued)
    for step in range(max(end for _, end in stays)):
        for at, start, tokens in chunks:
            if at == step:
                log.chunk(0, start, tokens)
        for at, start, tokens in verified:
            if at == step:
                log.ran.verify(0, start, tokens, 1)
        row = dict.fromkeys(RUN, 0) | {"planned": 10 * step, "start": 10 * step, "steps": 1}
        log.run(tuple(row.values()), array("q", [10]), array("q", [0]))
    for time, positions in preempted:
        log.event(time, Kind.PREEMPTED, 0, positions)
    for first, end in stays:
        log.stay(0, first, end)
    for first, end in stints:
        log.stint(0, first, end)
    log.end(990, Kind.CANCELLED, 0)
    if released:
        log.event(990, Kind.RELEASED, 0, 1)
    return RequestRecords(log)


def test_what_is_wasted_was_booked_before_as_it_was_computed():
    # A prompt of 5 and two tokens; preempted with 7 positions, it computes 5 of them again, then 2, then the eighth.
    # Preempted with these, it computes 3 of them again.
    records = worked(
        Request("a", 0, 5, 9),
        [(0, 3), (4, 7), (8, 10)],
        [(1, 3)],
        [(0, 0, 5), (4, 0, 5), (5, 5, 2), (6, 7, 1), (8, 0, 3)],
        preempted=[(30, 7), (70, 8)],
    )
    assert list(wasted_stretches(records, records.wasted)) == [
        ("prefill", 0, 1),
        ("decode", 1, 3),
        ("recomputed", 4, 5),
        ("recomputed", 5, 6),
        ("decode", 6, 7),
        ("recomputed", 8, 9),
        ("held", 9, 10),
    ]
    assert list(wasted_stretches(records, ~records.wasted)) == []


def test_one_that_left_its_slot_only_by_preemption_was_never_held():
    records = worked(Request("a", 0, 5, 9), [(0, 3)], chunks=[(0, 0, 5)], preempted=[(30, 5)], released=False)
    assert list(wasted_stretches(records, records.wasted)) == [("prefill", 0, 1), ("no_budget", 1, 3)]


def test_the_queue_entry_says_what_another_engine_lost():
    records = worked(Request("a", 0, 5, 9), [(0, 2)], chunks=[(0, 0, 3), (1, 3, 2)], queued=3)
    assert list(wasted_stretches(records, records.wasted)) == [("recomputed", 0, 1), ("prefill", 1, 2)]


def test_a_verification_of_drafts_decodes():
    records = worked(Request("a", 0, 5, 9), [(0, 2)], chunks=[(0, 0, 5)], verified=[(1, 5, 3)])
    assert list(wasted_stretches(records, records.wasted)) == [("prefill", 0, 1), ("decode", 1, 2)]


def test_nothing_was_booked_for_one_that_never_ran():
    waits = Request("b", 0, 1, 5, patience=Patience(cancel_after=3))
    records = RequestRecords(run([job("a", 9), waits], engine(slots=1)))
    assert records.wasted.tolist() == [False, True]
    assert list(wasted_stretches(records, records.wasted)) == []


def test_the_step_after_a_stay_is_not_of_it():
    worked = [(0, 1, 0), (3, 4, 0)]
    assert list(stretches(Request("a", 0, 5, 6), [[0, 0, 3], [0, 3, 4]], worked, over=True)) == [
        ("prefill", 0, 1),
        ("no_budget", 1, 3),
        ("prefill", 3, 4),
    ]


def test_a_decode_whose_token_a_retraction_dropped_is_wasted_as_a_decode():
    """Two pages of four positions. Pass 0 computes both prompts, 1 to 3 decode both.

    During pass 3 the next one is planned: a second page each is not there, so b gives up its memory and its token in
    flight. It is cancelled before it comes again: its prefill and its three decodes are wasted. a decodes three times
    more.
    """
    config = ApartConfig(slots=2, max_prefill_tokens=8, depth=2, by_rule=True, retract_latest=True)
    planner = ApartScheduler(Policy(FirstComeFirstServed(), Optimistic()), PagePool(2, 4), config)
    requests = [Request("a", 0, 1, 8), Request("b", 0, 1, 5, patience=Patience(cancel_after=27))]
    log = run(requests, planner, Unit(7))
    found = summary(log)["slot_steps"]
    assert (found["bought"], found["decode"], found["prefill"], found["wasted"]) == (14, 6, 1, 4)
    assert found["no_budget"] == 0
