"""What comes to an engine: taken, rejected with a reason, discarded, given up; and when a new plan is due for it."""

import pytest
from sim_stories import engine, happenings, job, static_engine, values

from policies.fcfs import FirstComeFirstServed
from policies.priority import PriorityOrder
from policies.sjf import ShortestJobFirst
from sim.engine.config import EngineConfig
from sim.engine.scheduler import Scheduler
from sim.log.events import Kind
from sim.memory.pool import PagePool
from sim.memory.prefix import PrefixPool
from sim.policy.base import Optimistic, Policy, Reserve
from sim.request import Leg, Patience, Request


def submitted(scheduler, *requests, now=0):
    """The sequences of these requests, None for each that was rejected."""
    return [scheduler.submit(request, now) for request in requests]


def step(scheduler, now):
    """One step of 1 ns from `now` on."""
    batch = scheduler.plan(now)
    scheduler.commit(batch, now + 1)
    return batch


def test_a_request_that_can_never_run_is_rejected_with_the_reason():
    scheduler = engine(slots=1, budget=8, pages=4, page_size=4, chunked=False, max_model_len=12)
    reasons = {
        (12, 1): "prompt leaves no room for an output",
        (11, 1): "prompt exceeds the token budget",
        (9, 1): "prompt exceeds the token budget",
        (8, 1): "",
        (8, 99): "",  # it ends at 12 positions, of which 11 are computed: 3 pages
    }
    for (prompt, output), reason in reasons.items():
        assert scheduler.misfit(job("a", output, prompt=prompt)) == reason
        taken = scheduler.submit(job("a", output, prompt=prompt), 0)
        assert (taken is None, scheduler.complaint) == (bool(reason), reason)
    small = engine(slots=1, pages=4, page_size=4)
    assert [small.misfit(job("a", output, prompt=8)) for output in (9, 10)] == ["", "needs more pages than exist"]
    late = engine(slots=1, pages=4, page_size=4, evict="after")  # it holds one position more
    assert [late.misfit(job("a", output, prompt=8)) for output in (8, 9)] == ["", "needs more pages than exist"]


def test_a_full_queue_rejects_what_is_not_handed_over():
    scheduler = engine(slots=1, queue_limit=1)
    first, second = submitted(scheduler, job("a", 1), job("b", 1))
    assert first is not None
    assert (second, scheduler.complaint, scheduler.unsettled) == (None, "queue is full", False)
    assert scheduler.submit(job("c", 5), 0, Leg(given=2, ready=2)) is not None
    assert scheduler.complaint == ""
    assert happenings(scheduler.log, "queued", "rejected") == [
        (0, "queued", "a"),
        (0, "rejected", "b"),
        (0, "queued", "c"),
    ]
    assert scheduler.log.ended == 1


def test_what_was_cancelled_on_its_way_is_only_logged():
    scheduler = engine(slots=1)
    submitted(scheduler, job("a", 9))
    step(scheduler, 0)
    step(scheduler, 1)
    scheduler.discard(job("b", 1), 2)
    assert scheduler.log.event_table()[-3:].tolist() == [
        [2, Kind.QUEUED, 1, 0],
        [2, Kind.CANCELLED, 1, 2],
        [2, Kind.DEQUEUED, 1, 0],
    ]
    assert (scheduler.log.ended, scheduler.state.waiting.count) == (1, 0)
    assert [request.id for request in scheduler.log.requests] == ["a", "b"]


def test_where_a_part_was_computed_elsewhere_the_queue_entry_says_what_is_lost():
    scheduler = engine(slots=1)
    scheduler.submit(job("a", 5, prompt=4), 3, Leg(given=1, redone=4, sent=2))
    assert scheduler.log.event_table().tolist() == [[3, Kind.QUEUED, 0, 4]]
    [seq] = scheduler.state.waiting.order
    assert (seq.known, seq.computed, seq.peak, seq.target.leg.sent) == (5, 0, 4, 2)


def test_an_arrival_is_seen_at_once_only_where_it_may_enter():
    scheduler = engine(slots=2)
    submitted(scheduler, job("a", 9))
    assert scheduler.unsettled  # a slot is free
    step(scheduler, 0)
    submitted(scheduler, job("b", 9))
    assert scheduler.unsettled
    step(scheduler, 1)
    submitted(scheduler, job("c", 9))
    assert not scheduler.unsettled  # none is


def test_behind_others_it_is_seen_only_if_its_pages_are_free():
    # Pages of 1: a holds 5 of 8, b needs 4 and waits; c with 3 fits, d with 4 does not, and neither goes before b.
    scheduler = engine(slots=3, pages=8, page_size=1)
    submitted(scheduler, job("a", 3, prompt=5), job("b", 1, prompt=4))
    step(scheduler, 0)
    seen = []
    for request in (job("c", 1, prompt=3), job("d", 1, prompt=4)):
        submitted(scheduler, request, now=1)
        seen.append(scheduler.unsettled)
    assert seen == [True, False]
    first = engine(slots=3, pages=8, page_size=1, order=ShortestJobFirst())
    submitted(first, job("a", 3, prompt=5), job("b", 1, prompt=4))
    step(first, 0)
    submitted(first, job("d", 1, prompt=4), now=1)
    assert first.unsettled  # under this order it might go before b


def test_the_first_that_waits_is_seen_whether_its_pages_are_free_or_not():
    # From then on the log says that one waits, and why.
    scheduler = engine(slots=3, pages=8, page_size=1)
    submitted(scheduler, job("a", 3, prompt=5))
    step(scheduler, 0)
    submitted(scheduler, job("b", 1, prompt=4), now=1)
    assert scheduler.unsettled


def test_where_the_number_present_limits_chunks_every_arrival_is_seen():
    scheduler = engine(slots=3, pages=8, page_size=1, chunk_limit=5)
    submitted(scheduler, job("a", 3, prompt=5), job("b", 1, prompt=4))
    step(scheduler, 0)
    submitted(scheduler, job("d", 1, prompt=4), now=1)
    assert scheduler.unsettled


def test_nothing_has_come_to_an_engine_that_is_new():
    scheduler = engine(slots=1)
    assert (scheduler.unsettled, scheduler.complaint, scheduler.busy) == (False, "", False)


@pytest.mark.parametrize(
    ("pool", "rule", "one_for_all"),
    [
        (PagePool(9, 4), Optimistic(), True),  # only the number of its positions is known of a sequence
        (PagePool(9, 4), Reserve(), False),
        (PrefixPool(9, 4), Optimistic(), False),
    ],
)
def test_a_sequence_knows_its_memory_and_what_it_holds_of_it(pool, rule, one_for_all):
    scheduler = Scheduler(Policy(FirstComeFirstServed(), rule), pool, EngineConfig(slots=1, token_budget=9))
    a, b = submitted(scheduler, job("a", 1), job("b", 1))
    assert a.pool is b.pool is pool
    assert (a.pages is b.pages) == one_for_all


def test_with_all_slots_taken_it_is_seen_where_it_may_take_one():
    scheduler = engine(slots=1, order=PriorityOrder(), preempt_for_slot=True)
    submitted(scheduler, job("a", 9))
    step(scheduler, 0)
    submitted(scheduler, job("b", 9))
    assert scheduler.unsettled


def test_under_a_limit_on_what_runs_the_first_to_wait_is_seen():
    # Its slots are not all taken, so that it is the limit that keeps it waiting, which the log says from then on.
    scheduler = engine(slots=2, max_active=1)
    submitted(scheduler, job("a", 9))
    step(scheduler, 0)
    seen = []
    for name in "bc":
        submitted(scheduler, job(name, 9), now=1)
        seen.append(scheduler.unsettled)
    assert seen == [True, False]


def test_while_admission_is_closed_the_first_to_wait_is_seen():
    scheduler = engine(slots=1, admit_every=5)
    submitted(scheduler, job("a", 9))
    step(scheduler, 0)
    submitted(scheduler, job("b", 9), now=1)
    assert scheduler.unsettled
    for now in range(1, 6):
        step(scheduler, now)
    submitted(scheduler, job("c", 9), now=6)
    assert not scheduler.unsettled


def test_a_closed_batch_sees_no_arrival():
    scheduler = static_engine(slots=4)
    submitted(scheduler, job("a", 9))
    assert not scheduler.unsettled


def test_giving_up_in_a_slot_or_in_the_queue():
    scheduler = engine(slots=1)
    a, b = submitted(scheduler, job("a", 9), job("b", 9))
    step(scheduler, 0)
    scheduler.abort(b, 1, Kind.CANCELLED)
    assert not scheduler.unsettled  # the only slot stays taken
    assert b.ended
    assert not b.finished
    scheduler.abort(a, 1, Kind.TIMED_OUT)
    assert scheduler.unsettled
    assert scheduler.take_departed() == [b, a]
    assert scheduler.take_departed() == []
    before = scheduler.log.event_table().tolist()
    assert before[-3:] == [[1, Kind.CANCELLED, 1, 1], [1, Kind.DEQUEUED, 1, 0], [1, Kind.TIMED_OUT, 0, 1]]
    scheduler.abort(a, 1, Kind.CANCELLED)
    assert scheduler.unsettled is False
    assert scheduler.log.event_table().tolist() == before
    scheduler.plan(1)
    assert happenings(scheduler.log, "released") == [(1, "released", "a")]
    assert scheduler.log.ended == 2
    scheduler.check()


def test_one_that_gives_up_with_its_last_token_in_flight_leaves_with_the_next_plan():
    # Two steps in flight: b's second and last token is planned with step 1. The log says that nothing was to come.
    scheduler = engine(slots=2, depth=2)
    _, b = submitted(scheduler, job("a", 9), job("b", 2))
    first = scheduler.plan(0)
    scheduler.plan(0)
    scheduler.commit(first, 1)
    scheduler.abort(b, 1, Kind.CANCELLED)
    scheduler.plan(1)
    assert scheduler.log.event_table()[-2:].tolist() == [[1, Kind.CANCELLED, 1, 1], [1, Kind.RELEASED, 1, 1]]


def test_giving_up_in_the_queue_is_seen_where_the_head_may_change():
    roomy = engine(slots=2, pages=8, page_size=1)
    _, b = submitted(roomy, job("a", 3, prompt=5), job("b", 1, prompt=4))
    step(roomy, 0)
    roomy.abort(b, 1, Kind.CANCELLED)
    assert roomy.unsettled
    closed = engine(slots=1, admit_every=5)
    _, b = submitted(closed, job("a", 9), job("b", 9))
    step(closed, 0)
    closed.abort(b, 1, Kind.CANCELLED)
    assert closed.unsettled
    urgent = engine(slots=1, order=PriorityOrder(), preempt_for_slot=True)
    _, b = submitted(urgent, job("a", 9), job("b", 9))
    step(urgent, 0)
    urgent.abort(b, 1, Kind.CANCELLED)
    assert urgent.unsettled


def test_after_a_failure_only_the_queue_is_left():
    scheduler = engine(slots=1, admission=Reserve(), pages=40, page_size=1)
    submitted(scheduler, job("a", 9, prompt=3), job("b", 9))
    step(scheduler, 0)
    step(scheduler, 1)
    state = scheduler.state
    assert (state.totals.computed, state.totals.reach, state.totals.touched, state.pool.free) == (4, 11, 4, 29)
    for seq in state.running.values():
        state.decoders.leave(seq)
    submitted(scheduler, job("c", 9))
    scheduler.reset(2)
    totals = state.totals
    assert (totals.computed, totals.reach, totals.touched, totals.over, totals.swapping) == (0, 0, 0, 0, 0)
    assert (len(state.running), len(state.catching_up), state.waiting.count, state.decoders.step) == (0, 0, 2, 2)
    assert (state.pool.free, scheduler.unsettled, scheduler.busy) == (40, False, True)
    assert state.admissions.filled == []


def test_the_last_token_of_a_sequence_can_be_to_come_again():
    scheduler = engine(slots=1)
    [a] = submitted(scheduler, job("a", 1))
    scheduler.plan(0)
    assert a.over is True
    scheduler.state.reopen(a)
    assert a.over is False


def test_one_that_goes_on_elsewhere_ends_here_with_its_first_token():
    scheduler = engine(slots=1)
    a = scheduler.submit(job("a", 5), 0, Leg(hands_over=True))
    step(scheduler, 0)
    assert scheduler.log.event_table()[-2:].tolist() == [[1, Kind.FIRST_TOKEN, 0, 0], [1, Kind.MOVED, 0, 0]]
    assert a.outcome is Kind.MOVED
    assert scheduler.take_departed() == [a]


def test_one_that_comes_with_tokens_of_another_engine_gets_the_others_here():
    # Two of five tokens were given elsewhere: three steps compute them and the prompt, and bring the others.
    scheduler = engine(slots=1)
    scheduler.submit(job("a", 5), 0, Leg(given=2))
    for now in range(3):
        step(scheduler, now)
    assert values(scheduler.log, "finished") == [("a", 3)]
    assert not scheduler.plan(3).tokens
    scheduler.check()


def test_one_whose_client_waits_for_two_tokens_is_cancelled_with_the_second():
    scheduler = engine(slots=1)
    [a] = submitted(scheduler, Request("a", 0, 3, 9, patience=Patience(cancel_tokens=2)))
    step(scheduler, 0)
    step(scheduler, 1)
    assert scheduler.log.event_table()[-1].tolist() == [2, Kind.CANCELLED, 0, 2]  # after two steps
    assert (a.outcome, scheduler.take_departed()) == (Kind.CANCELLED, [a])


def test_one_whose_last_token_is_lost_has_ended():
    scheduler = engine(slots=1, evict="after", harvest="next")
    [a] = submitted(scheduler, job("a", 1))
    step(scheduler, 0)
    scheduler.abort(a, 1, Kind.CANCELLED)
    step(scheduler, 1)
    scheduler.plan(2)
    assert [(event.time, event.what) for event in happenings(scheduler.log)] == [
        (0, "queued"),
        (0, "admitted"),
        (1, "lost"),
        (2, "finished"),
        (2, "released"),
    ]


def test_what_a_sequence_is_to_compute():
    # 5 + 4: 9 tokens, of which the last is never computed; it may get 7.
    scheduler = engine(slots=1, depth=2)
    target = scheduler.intake.sequence(Request("a", 0, 5, 4, declared=7), 0, Leg()).target
    assert (target.goal, target.most, target.cut_short, target.leaves, target.lingers) == (8, 11, False, False, 1)
    waits = Request("a", 0, 5, 4, declared=7, patience=Patience(cancel_tokens=2))
    target = scheduler.intake.sequence(waits, 0, Leg()).target
    assert (target.goal, target.most, target.cut_short, target.leaves) == (6, 11, True, False)
    short = engine(slots=1, max_model_len=7, evict="after")
    target = short.intake.sequence(Request("a", 0, 5, 4, declared=7), 0, Leg()).target
    assert (target.goal, target.most, target.cut_short, target.lingers) == (6, 7, False, 0)
    leg = Leg(hands_over=True)
    target = scheduler.intake.sequence(Request("a", 0, 5, 4), 0, leg).target
    assert (target.goal, target.most, target.cut_short, target.leaves) == (5, 5, True, True)
    target = scheduler.intake.sequence(Request("a", 0, 5, 1), 0, leg).target
    assert (target.goal, target.most, target.cut_short, target.leaves) == (5, 5, False, False)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"slots": 0}, "slots is 0; expected at least 1"),
        ({"slots": 1, "budget": 0}, "token_budget is 0; expected at least 1"),
        ({"slots": 1, "max_active": 0}, "max_active is 0; expected at least 1"),
        ({"slots": 1, "depth": 3}, "depth is 3; expected 1 or 2"),
        ({"slots": 1, "harvest": "next"}, "harvest 'next' needs evict 'after'"),
        ({"slots": 1, "depth": 2, "evict": "after"}, "depth 2 needs evict 'before'"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        engine(**settings)
