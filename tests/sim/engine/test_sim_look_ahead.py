"""For how many steps a plan holds: to the next end, want of pages, or change of what waits, and no further."""

from array import array

import pytest
from sim_stories import PLENTY, engine, job, static_engine

from policies.fcfs import FirstComeFirstServed
from sim.accounting.frames import steps_frame
from sim.engine.config import EngineConfig
from sim.engine.scheduler import Scheduler
from sim.memory.prefix import PrefixPool
from sim.policy.base import Policy, Reserve
from sim.request import Request


def submitted(scheduler, *requests):
    """The engine, with these requests in its queue."""
    for request in requests:
        scheduler.submit(request, 0)
    return scheduler


def holds(scheduler, steps, first=0):
    """For how many steps each plan from number `first` on holds, although every step is planned; 0: nothing to do."""
    found = []
    for now in range(first, first + steps):
        batch = scheduler.plan(now)
        if batch.tokens:
            scheduler.commit(batch, now + 1)
        found.append(len(batch.growth) if batch.tokens else 0)
    return found


def test_to_the_end_of_the_first_that_ends():
    # Step 0 computes the prompts. a decodes in steps 1 and 2, b in 1 to 4.
    scheduler = submitted(engine(slots=2), job("a", 3), job("b", 5))
    assert holds(scheduler, 6) == [1, 2, 1, 2, 1, 0]
    assert scheduler.log.step_durations().tolist() == [1] * 5


def test_not_longer_than_is_planned_ahead_at_most():
    assert holds(submitted(engine(slots=1), job("a", 300)), 3) == [1, 256, 256]


def two():
    """a begins a page of 4 in steps 0, 4 and 8; b in 0, 1 and 5, and ends with step 4."""
    return job("a", 12), job("b", 5, prompt=4)


def test_to_the_step_for_which_pages_are_short():
    # Three pages: one each, then b's second. In step 4 there is none for a.
    assert holds(submitted(engine(slots=2, pages=3, page_size=4), *two()), 4) == [1, 3, 2, 1]
    # A fourth is enough until b ends; then its two are free as well.
    assert holds(submitted(engine(slots=2, pages=4, page_size=4), *two()), 6) == [1, 4, 3, 2, 1, 7]


def test_the_pages_that_each_of_its_steps_begins_are_known():
    scheduler = submitted(engine(slots=2, page_size=4), *two())
    scheduler.commit(scheduler.plan(0), 1)
    assert scheduler.plan(1).growth == array("q", [0, 0, 0, 1])


def test_pages_that_are_reserved_are_never_short():
    scheduler = submitted(engine(slots=1, pages=12, page_size=1, admission=Reserve()), job("a", 12))
    assert holds(scheduler, 2) == [1, 11]
    assert scheduler.pool.free == 0


def test_while_the_head_waits_for_pages_to_where_the_next_one_no_longer_fits():
    # Of 22 pages a holds 3 in step 1, with 19 free: not enough for b's 21, but for c's 15, until 5 steps have run.
    three = (job("a", 20, prompt=2), job("b", 1, prompt=21), job("c", 1, prompt=15))
    scheduler = submitted(engine(slots=2, pages=22, page_size=1), *three)
    assert holds(scheduler, 7) == [1, 5, 4, 3, 2, 1, 14]
    assert steps_frame(scheduler.log).reason.tolist() == ["blocked"] * 6 + ["no_memory"]


def test_to_where_a_page_that_the_head_counts_on_is_evicted():
    # z leaves 3 of 12 pages in the cache. b, whose prompt begins with them, needs 11 and waits for a, which takes its
    # third page in step 2: of 9 that are free 6 were never cached.
    policy = Policy(FirstComeFirstServed())
    scheduler = Scheduler(policy, PrefixPool(12, 1, "all"), EngineConfig(slots=2, token_budget=PLENTY))
    submitted(scheduler, Request("z", 0, 3, 1, tokens=(1, 2, 3)))
    holds(scheduler, 1)
    submitted(scheduler, job("a", 10, prompt=2), Request("b", 0, 11, 1, tokens=(1, 2, 3, *[9] * 8)))
    assert holds(scheduler, 2, first=1) == [1, 7]


def test_to_the_step_from_which_admission_is_open_again():
    # Step 0 admits a, and the next that may is step 5. Where none waits that makes no difference.
    assert holds(submitted(engine(slots=2, admit_every=5), job("a", 10)), 3) == [1, 9, 8]
    scheduler = submitted(engine(slots=2, admit_every=5, max_active=1), job("a", 10), job("b", 1))
    assert holds(scheduler, 7) == [1, 4, 3, 2, 1, 5, 4]


def test_one_that_has_only_its_last_token_to_come_leaves_with_the_next_plan():
    # Two steps in flight: a's second and last token is planned with step 1, and comes while step 2 is planned.
    scheduler = submitted(engine(slots=2, depth=2), job("a", 2), job("b", 10))
    first, second = scheduler.plan(0), scheduler.plan(0)
    scheduler.commit(first, 1)
    second.row.begin(1)
    third = scheduler.plan(1)
    scheduler.commit(second, 2)
    third.row.begin(2)
    fourth = scheduler.plan(2)
    assert [len(batch.growth) for batch in (first, second, third, fourth)] == [1, 1, 1, 7]


def test_a_closed_batch_goes_on_when_one_of_it_has_ended():
    assert holds(submitted(static_engine(slots=2), job("a", 2), job("b", 10)), 4) == [1, 1, 8, 7]


@pytest.mark.parametrize("ahead", [True, False])
@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_the_steps_of_one_batch_may_be_committed_in_parts(ahead, at_once):
    # Whether they were announced by `proceed` or not: the log is that of planning each of them.
    def log(part):
        scheduler = submitted(engine(slots=2, page_size=2), job("a", 6, prompt=2), job("b", 9, prompt=2))
        now = 0
        while (batch := scheduler.plan(now)).tokens:
            left = len(batch.growth) if part else 1
            if ahead and left > 1:
                scheduler.proceed(batch, left - 1)
            while left:
                steps = min(part or 1, left)
                left -= steps
                now += steps
                scheduler.commit(batch, now, array("q", [1] * steps))
        scheduler.check()
        return scheduler.log

    assert log(at_once).sha256() == log(None).sha256()
    assert steps_frame(log(at_once)).equals(steps_frame(log(None)))
