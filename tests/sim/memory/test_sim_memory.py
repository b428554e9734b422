"""Pages: what is held, who has to give it back, and who may never enter."""

import pytest
from sim_stories import Recorder, booked, chunks, engine, happenings, job, run, times, values

from policies.sjf import ShortestJobFirst
from sim.accounting.frames import requests_frame, steps_frame
from sim.accounting.metrics import summary
from sim.cost.forms import Affine
from sim.memory.pool import PagePool
from sim.policy.base import Reserve
from sim.sequence import Sequence


def test_pages_are_rounded_up_for_each_sequence():
    # 17, 31 and 33 tokens in pages of 16: 2 + 2 + 3 = 7 pages, 112 positions, 31 of them unfilled.
    requests = [job("a", 1, prompt=17), job("b", 1, prompt=31), job("c", 1, prompt=33)]
    log = run(requests, engine(slots=3, pages=7))
    assert log.steps == 1
    use = summary(log)["pages"]
    assert use["peak_used"] == 7
    assert use["positions"] == {"live": 81, "tail": 31, "reserved": 0, "cached": 0, "free": 0}
    assert use["mean_live_fraction"] == pytest.approx(81 / 112)
    # Six pages are enough for 81 tokens, but not for these three: c has to wait.
    assert times(run(requests, engine(slots=3, pages=6)), "admitted") == {"a": 0, "b": 0, "c": 1}


def test_the_last_token_never_takes_a_position():
    # 15 + 2 - 1 = 16 positions are one page, 16 + 2 - 1 = 17 are two.
    log = run([job("a", 2, prompt=15), job("b", 2, prompt=16), job("c", 1, prompt=16)], engine(slots=1, pages=1))
    assert times(log, "finished") == {"a": 2, "c": 3}
    assert times(log, "rejected") == {"b": 0}


def test_a_request_that_needs_more_pages_than_exist_is_rejected_at_arrival():
    # 2 pages of 4: 5 + 4 - 1 = 8 positions fit, 5 + 5 - 1 = 9 never do, and the declared limit is what counts.
    requests = [job("a", 5, prompt=5), job("b", 1, prompt=5, max_output=5), job("c", 4, prompt=5, arrival=3)]
    log = run(requests, engine(slots=1, pages=2, page_size=4))
    assert times(log, "rejected") == {"a": 0, "b": 0}
    assert times(log, "finished") == {"c": 7}
    assert summary(log)["rejections"] == {"needs more pages than exist": 2}
    frame = requests_frame(log)
    assert frame.status.tolist() == ["rejected", "rejected", "finished"]
    assert frame.reason.tolist() == ["needs more pages than exist"] * 2 + [""]


def two_that_do_not_fit():
    """3 pages of 2; a may come to hold 2 + 4 - 1 = 5 positions, b 2 + 3 - 1 = 4."""
    return [job("a", 4, prompt=2), job("b", 3, prompt=2)]


def test_the_last_admitted_gives_its_pages_back_and_starts_again():
    # step 0  a and b compute their prompts: 1 page each, 1 free
    # step 1  a's third position takes the last page; b's finds none: b, the last admitted, leaves with 2 computed
    # step 2  a's fourth; b knows 3 tokens, needs 2 pages, 1 is free
    # step 3  a's fifth takes that one: a has its four tokens at 4
    # step 4  b computes its 3 known tokens, 2 of them again, and gets its second token at 5
    # step 5  its third at 6
    log = run(two_that_do_not_fit(), engine(slots=2, pages=3, page_size=2))
    assert happenings(log, "preempted") == [(1, "preempted", "b")]
    assert values(log, "preempted") == [("b", 2)]
    assert chunks(log) == [(0, "a", 0, 2), (0, "b", 0, 2), (4, "b", 0, 3)]
    assert times(log, "finished") == {"a": 4, "b": 6}
    assert values(log, "resumed") == [("b", 0)]
    found = summary(log)
    assert found["preemptions"] == 1
    assert booked(found) == {"prefill": 2, "decode": 4, "recomputed": 1, "no_memory": 3, "no_demand": 2}
    assert found["tokens"]["computed"] == (2 + 4 - 1) + (2 + 3 - 1) + 2
    assert found["tokens"]["recomputed"] == 2
    assert found["pages"]["peak_used"] == 3
    frame = steps_frame(log)
    assert frame.pages_used.tolist() == [2, 2, 2, 3, 2, 2]
    assert frame.live.tolist() == [4, 3, 4, 5, 3, 4]
    assert frame.waiting.tolist() == [0, 1, 1, 1, 0, 0]
    assert frame.reason.tolist() == ["no_demand", "no_memory", "no_memory", "no_memory", "no_demand", "no_demand"]


def test_a_preemption_does_not_restart_the_wait():
    frame = requests_frame(run(two_that_do_not_fit(), engine(slots=2, pages=3, page_size=2))).set_index("id")
    assert frame.wait_s.tolist() == [0, 0]
    assert frame.preemptions.tolist() == [0, 1]
    # b's tokens come at 1, 5 and 6.
    assert frame.tpot_s["b"] == pytest.approx(2.5e-9)
    assert frame.max_itl_s["b"] == pytest.approx(4e-9)


def test_reserve_never_preempts():
    # a reserves all 3 pages: b enters when it has ended.
    log = run(two_that_do_not_fit(), engine(slots=2, pages=3, page_size=2, admission=Reserve()))
    assert not happenings(log, "preempted")
    assert times(log, "admitted") == {"a": 0, "b": 4}
    assert times(log, "finished") == {"a": 4, "b": 7}
    assert booked(summary(log)) == {"prefill": 2, "decode": 5, "no_memory": 4, "no_demand": 3}


def test_reserved_positions_are_accounted():
    # Pages of 4: 4 + 9 - 1 = 12 positions are reserved, 4 of them live, 4 of 16 free.
    log = run([job("a", 1, prompt=4, max_output=9)], engine(slots=1, pages=4, page_size=4, admission=Reserve()))
    use = summary(log)["pages"]
    assert use["positions"] == {"live": 4, "tail": 0, "reserved": 8, "cached": 0, "free": 4}
    assert use["mean_live_fraction"] == pytest.approx(4 / 12)


def three_in_five_pages(b=4, c_arrival=0):
    """Pages of 2, 5 of them, 2 slots. In step 3 a's fifth position finds no page, and b leaves with 5 computed."""
    return [job("a", 6, prompt=2), job("b", b, prompt=3), job("c", 2, arrival=c_arrival)]


def test_under_fcfs_a_preempted_sequence_returns_to_the_front():
    # step 3  b leaves, nobody enters
    # step 4  b knows 6 tokens and needs 3 pages, 2 are free; c, behind it, would fit in one
    # step 5  the same with 1 free; a ends at 6
    # step 6  b computes 6 tokens, 5 of them again, and has its fourth and last at 7; c computes its prompt
    # step 7  c ends at 8
    log = run(three_in_five_pages(), engine(slots=2, pages=5, page_size=2))
    assert values(log, "preempted") == [("b", 5)]
    assert values(log, "resumed") == [("b", 2)]  # the token before came from step 2
    assert [event.who for event in happenings(log, "admitted")] == ["a", "b", "b", "c"]
    assert times(log, "finished") == {"a": 6, "b": 7, "c": 8}
    found = summary(log)
    assert booked(found) == {
        "prefill": 3,
        "decode": 8,
        "recomputed": 1,
        "no_memory": 1,
        "blocked": 2,
        "no_demand": 1,
    }
    assert found["tokens"]["computed"] == 7 + 6 + 2 + 5


def test_under_another_order_a_preempted_sequence_is_ranked_again():
    # c with 2 tokens comes while b, with 7, runs; when b has been preempted c goes first.
    requests = three_in_five_pages(b=7, c_arrival=1)
    log = run(requests, engine(slots=2, pages=5, page_size=2, order=ShortestJobFirst()))
    assert [event.who for event in happenings(log, "admitted")] == ["a", "b", "c", "b"]
    assert times(log, "admitted")["c"] == 4
    log = run(requests, engine(slots=2, pages=5, page_size=2))
    assert [event.who for event in happenings(log, "admitted")] == ["a", "b", "b", "c"]


def test_optimistic_admission_is_a_check_and_not_a_reservation():
    # 4 pages of 2, budget 4. b's 6 tokens need 3 pages, which are free when it is admitted, and it takes one for
    # its first 2. In step 1 a takes a page; b's 3 next need 2 and 1 is free: it is its own victim.
    log = run([job("a", 3, prompt=2), job("b", 1, prompt=6)], engine(slots=2, budget=4, pages=4, page_size=2))
    assert chunks(log) == [(0, "a", 0, 2), (0, "b", 0, 2), (3, "b", 0, 4), (4, "b", 4, 2)]
    assert values(log, "preempted") == [("b", 2)]
    assert times(log, "finished") == {"a": 3, "b": 5}
    found = summary(log)
    assert found["tokens"]["recomputed"] == 2
    # b's chunk in step 0 and its last are prompt; the one of step 3 holds 2 positions that were thrown away.
    assert booked(found) == {"prefill": 3, "decode": 2, "recomputed": 1, "no_memory": 2, "no_demand": 2}


class TheFirst:
    """The first admitted must go."""

    def choose(self, running, step):
        return next(iter(running.values()))


def test_what_a_victim_had_in_the_step_returns_to_the_budget():
    # 10 pages of 1, budget 3: each computes a position a step, so that 9 are held after step 2. In step 3 a takes the
    # last page and b's fourth position finds none: a leaves, with 4 pages and the token it had been given. b ends,
    # and c gets 2 tokens of the budget, not 1. When c has ended too, a starts again from its 4 known tokens.
    requests = [job("a", 4), job("b", 4), job("c", 1, prompt=8)]
    log = run(requests, engine(slots=3, budget=3, pages=10, page_size=1, victim=TheFirst()))
    assert values(log, "preempted") == [("a", 3)]
    assert [chunk for chunk in chunks(log) if chunk[0] > 2] == [
        (3, "c", 3, 2),
        (4, "c", 5, 3),
        (5, "a", 0, 3),
        (6, "a", 3, 1),
    ]
    assert steps_frame(log).tokens.tolist() == [3, 3, 3, 3, 3, 3, 1]
    assert times(log, "finished") == {"a": 7, "b": 4, "c": 5}


def test_a_contiguous_cache_reserves_every_position():
    log = run([job("a", 3, prompt=3)], engine(slots=1, pages=6, page_size=1, admission=Reserve(), contiguous=True))
    # 5 of 6 positions are held in all three steps, with 3, 4 and 5 live ones.
    assert steps_frame(log).pages_used.tolist() == [5, 5, 5]
    positions = summary(log)["pages"]["positions"]
    assert positions == pytest.approx({"live": 4, "tail": 0, "reserved": 1, "cached": 0, "free": 1})


def test_a_contiguous_cache_copies_a_prompt_or_the_grown_rectangle():
    # a (3 + 3 - 1 = 5 positions) opens a rectangle of 1 x 5. b (3) fits its rows: its prompt of 2.
    # c (7) makes the rows of all three longer: 3 x 7. When all have left d (4) opens a new one.
    requests = [
        job("a", 3, prompt=3),
        job("b", 2, prompt=2, arrival=1),
        job("c", 4, prompt=4, arrival=2),
        job("d", 3, prompt=2, arrival=10),
    ]
    cost = Recorder()
    scheduler = engine(slots=3, pages=100, page_size=1, admission=Reserve(), contiguous=True)
    run(requests, scheduler, cost, macro=False)
    assert [copied for (copied,) in cost.seen("copied")] == [5, 2, 21, 0, 0, 0, 4, 0, 0]


def test_sequences_spliced_in_at_once_are_copied_one_by_one():
    # a alone: 1 x 5; then b with 7 positions: 2 x 7.
    cost = Recorder()
    scheduler = engine(slots=3, pages=100, page_size=1, admission=Reserve(), contiguous=True)
    run([job("a", 3, prompt=3), job("b", 4, prompt=4)], scheduler, cost, macro=False)
    assert cost.seen("copied")[0] == (5 + 14,)


def test_a_sequence_as_long_as_the_rows_is_copied_alone():
    # a opens a rectangle of 1 x 5; b has 5 positions too: its prompt of 2.
    cost = Recorder()
    scheduler = engine(slots=3, pages=100, page_size=1, admission=Reserve(), contiguous=True)
    run([job("a", 3, prompt=3), job("b", 4, prompt=2)], scheduler, cost, macro=False)
    assert cost.seen("copied")[0] == (5 + 2,)


def test_a_pool_counts_its_pages():
    pool = PagePool(pages=3, page_size=16)
    assert [pool.pages_for(positions) for positions in (0, 1, 16, 17, 32, 33)] == [0, 1, 1, 2, 2, 3]
    assert pool.can_take(3)
    assert not pool.can_take(4)
    pool.take(2)
    assert (pool.used, pool.free) == (2, 1)
    with pytest.raises(AssertionError, match="2 pages were never given back"):
        pool.check()
    nobody = Sequence(job("a", 1), 0)
    pool.give_back(nobody, 2)
    pool.check()
    with pytest.raises(AssertionError, match="gave back a page that was never taken"):
        pool.give_back(nobody, 1)
    with pytest.raises(AssertionError, match="took a page that was not free"):
        PagePool(1, 1).take(2)


def test_one_that_is_preempted_with_its_last_token_in_flight_leaves_the_queue_when_it_comes():
    # 4 pages of 1, two steps in flight. Step 1 gives a and b their second positions, and b its last token. Step 2,
    # planned meanwhile, has no page for a: b, the last admitted, gives its own back, of which nothing is lost.
    log = run([job("a", 4), job("b", 2)], engine(slots=2, pages=4, page_size=1, depth=2))
    assert [event[1:] for event in happenings(log, "preempted", "dequeued", "finished") if event.who == "b"] == [
        ("preempted", "b"),
        ("finished", "b"),
        ("dequeued", "b"),
    ]
    assert times(log, "preempted") == {"b": 1}
    assert times(log, "dequeued") == {"b": 2}
    assert times(log, "finished") == {"a": 4, "b": 2}
    assert values(log, "preempted") == [("b", 0)]
    assert summary(log)["tokens"]["recomputed"] == 0


def test_a_swapped_sequence_goes_on_where_it_was():
    # As above, 3 pages of 2: at 1 b leaves with 2 computed. Nothing of it is computed again: at 4 it comes back with
    # its 2 positions and computes the third, its second token at 5, its third at 6. 2 positions move out, 2 move in.
    cost = Recorder()
    log = run(two_that_do_not_fit(), engine(slots=2, pages=3, page_size=2, swap=True), cost, macro=False)
    assert happenings(log, "preempted") == [(1, "preempted", "b")]
    assert chunks(log) == [(0, "a", 0, 2), (0, "b", 0, 2), (4, "b", 2, 1)]
    assert times(log, "finished") == {"a": 4, "b": 6}
    assert cost.seen("swapped") == [(0,), (2,), (0,), (0,), (2,), (0,)]
    found = summary(log)
    assert booked(found) == {"prefill": 2, "decode": 5, "no_memory": 3, "no_demand": 2}
    assert found["tokens"]["recomputed"] == 0
    assert found["tokens"]["computed"] == (2 + 4 - 1) + (2 + 3 - 1)


def test_swapping_is_paid_for():
    cost = Affine(base=10, per_swapped_token=7)
    log = run(two_that_do_not_fit(), engine(slots=2, pages=3, page_size=2, swap=True), cost)
    assert log.step_durations().tolist() == [10, 24, 10, 10, 24, 10]
