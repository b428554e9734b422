"""The ledger: one story for each row of empty slots, and the same rows in time."""

import pytest
from sim_stories import Script, booked, engine, job, jobs, run

from policies.fcfs import FirstComeFirstServed
from policies.routers import RoundRobin
from sim.accounting.frames import steps_frame
from sim.accounting.ledger import fleet_pages, peak_pages
from sim.accounting.metrics import summary
from sim.accounting.requests import RequestRecords
from sim.accounting.work.wasted import decoding, stretches
from sim.cost.forms import Unit
from sim.engine.config import EngineConfig
from sim.engine.scheduler import Scheduler
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
