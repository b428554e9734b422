"""What a plan says of its step: who computes what, and what is counted of it for the cost and the log."""

import pytest
from sim_stories import PLENTY, Recorder, engine, job, run, times, values

from policies.fcfs import FirstComeFirstServed
from sim.accounting.frames import steps_frame
from sim.engine.config import EngineConfig
from sim.engine.scheduler import Scheduler
from sim.memory.prefix import PrefixPool
from sim.policy.base import Policy
from sim.request import Leg, Request


class TheSecond:
    """The second admitted must go, or the only one."""

    def choose(self, running, step):
        return list(running.values())[:2][-1]


def assigned(scheduler, now):
    """(who, start, tokens) of the next plan, whose step then runs."""
    batch = scheduler.plan(now)
    found = [(seq.request.id, start, tokens) for seq, start, tokens in scheduler.assignments(batch)]
    if batch.tokens:
        scheduler.commit(batch, now + 1)
    return found


def test_who_computes_what_in_the_order_of_admission():
    # 4 tokens a step: a decodes on, b gets its second and last token, c what is left for its prompt of 6.
    scheduler = engine(slots=3, budget=4)
    for request in (job("a", 9), job("b", 2), job("c", 9, prompt=6)):
        scheduler.submit(request, 0)
    assert [assigned(scheduler, now) for now in range(4)] == [
        [("a", 0, 1), ("b", 0, 1), ("c", 0, 2)],
        [("a", 1, 1), ("b", 1, 1), ("c", 2, 2)],
        [("a", 2, 1), ("c", 4, 2)],
        [("a", 3, 1), ("c", 6, 1)],
    ]


def test_who_gets_nothing_computes_nothing():
    # 7 pages of 1. After two steps each has two positions, and one page is left: a takes it, b finds none and leaves
    # as the victim, which ends the pass. c gets nothing in step 2, and goes on in step 3.
    scheduler = engine(slots=3, pages=7, page_size=1, victim=TheSecond())
    for name in "abc":
        scheduler.submit(job(name, 4), 0)
    assert [assigned(scheduler, now) for now in range(4)] == [
        [("a", 0, 1), ("b", 0, 1), ("c", 0, 1)],
        [("a", 1, 1), ("b", 1, 1), ("c", 1, 1)],
        [("a", 2, 1)],
        [("a", 3, 1), ("c", 2, 1)],
    ]


def test_those_after_a_victim_go_on():
    # 6 pages of 1, all taken after two steps. a finds none, and b leaves with two: one for a, and one for c.
    scheduler = engine(slots=3, pages=6, page_size=1, victim=TheSecond())
    for name in "abc":
        scheduler.submit(job(name, 4), 0)
    assert [assigned(scheduler, now) for now in range(3)][-1] == [("a", 2, 1), ("c", 2, 1)]
    assert scheduler.pool.free == 0


class TheFirst:
    """The first admitted must go."""

    def choose(self, running, step):
        return next(iter(running.values()))


def test_a_swap_is_paid_with_the_next_step_that_computes():
    # 4 pages of 1, all taken by two positions each. a finds none for its third and leaves itself, which ends the
    # pass: nothing is computed. Planned again, b goes on, and a's two positions move out with that step.
    cost = Recorder()
    log = run(
        [job("a", 4), job("b", 4)],
        engine(slots=2, pages=4, page_size=1, swap=True, victim=TheFirst()),
        cost,
        macro=False,
    )
    # They move in again when b has left, at 4.
    assert [moved for (moved,) in cost.seen("swapped")] == [0, 0, 2, 0, 2, 0]
    assert values(log, "preempted") == [("a", 0)]
    assert times(log, "finished") == {"a": 6, "b": 4}


def test_all_positions_that_move_in_one_step_are_paid():
    # 7 pages of 1. c leaves in step 2 with two positions, b in step 3 with three. a has all pages in step 6, and in
    # step 7 both are back.
    cost = Recorder()
    requests = [job("a", 7), job("b", 4), job("c", 3)]
    log = run(requests, engine(slots=3, pages=7, page_size=1, swap=True), cost, macro=False)
    assert [moved for (moved,) in cost.seen("swapped")] == [0, 0, 2, 3, 0, 0, 0, 5]
    assert times(log, "finished") == {"a": 7, "b": 8, "c": 8}
    # 8 pages. In step 1 a computes 4 positions more: c and then b leave for it, each with one position.
    cost = Recorder()
    requests = [job("a", 1, prompt=8), job("b", 3), job("c", 3)]
    scheduler = engine(slots=3, budget=6, pages=8, page_size=1, chunk_limit=4, swap=True)
    run(requests, scheduler, cost, macro=False)
    assert [moved for (moved,) in cost.seen("swapped")][:2] == [0, 2]


def test_what_is_looked_up_again_after_a_preemption_is_counted_apart():
    # As above, with a cache: a and b look up a token each; a, with two more, looks up three when it comes back.
    policy = Policy(FirstComeFirstServed(), victim=TheFirst())
    scheduler = Scheduler(policy, PrefixPool(4, 1), EngineConfig(slots=2, token_budget=PLENTY))
    log = run([job("a", 4), job("b", 4)], scheduler)
    assert (log.cache.queried, log.cache.requeried) == (2, 3)


def test_a_page_that_two_hold_is_live_once():
    # b finds the first of the two pages that a has computed: 33 and 32 positions, 16 of them the same.
    tokens = tuple(range(32))
    requests = [Request("a", 0, 32, 3, tokens=tokens), Request("b", 1, 32, 1, tokens=tokens)]
    scheduler = Scheduler(
        Policy(FirstComeFirstServed()), PrefixPool(9, 16), EngineConfig(slots=2, token_budget=PLENTY)
    )
    frame = steps_frame(run(requests, scheduler))
    assert frame.live.tolist() == [32, 33 + 32 - 16, 34]
    assert frame.pages_used.tolist() == [2, 4, 3]


class Longest:
    """A cost of 1 ns that depends on the longest decoder, and notes it."""

    def __init__(self):
        self.seen = []

    def step(self, shape):
        self.seen.append(shape.longest)
        return 1


def test_the_longest_decoder_is_known_where_a_cost_depends_on_it():
    scheduler = engine(slots=2)
    scheduler.state.decoders.watch()
    cost = Longest()
    run([job("a", 4, prompt=2), job("b", 3, prompt=5)], scheduler, cost, macro=False)
    assert cost.seen == [0, 5, 6, 4]


@pytest.mark.parametrize("ready", [3, 4])
def test_positions_that_are_sent_along_are_not_looked_up_in_the_cache(ready):
    # z has left the same prompt in the cache. b comes with a token from elsewhere, and with the KV of its prompt.
    tokens = (1, 2, 3, 4)
    scheduler = Scheduler(
        Policy(FirstComeFirstServed()), PrefixPool(20, 2, "all"), EngineConfig(slots=1, token_budget=9)
    )
    scheduler.submit(Request("z", 0, 4, 1, tokens=tokens), 0)
    assigned(scheduler, 0)
    scheduler.submit(Request("b", 1, 4, 3, tokens=tokens), 1, Leg(given=1, ready=ready))
    assert assigned(scheduler, 1) == [("b", ready, 5 - ready)]
