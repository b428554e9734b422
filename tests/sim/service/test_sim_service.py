"""Clients that try again, replicas that fail, pools that hand over: what becomes of a request, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sim_stories import booked, engine, job, run, times

from policies import routers
from sim.accounting.frames import client_frame
from sim.accounting.metrics import summary
from sim.cost.forms import Affine, Unit
from sim.log.events import Kind
from sim.request import Patience, Request
from sim.service.clients import Window
from sim.service.outages import Outages
from sim.service.pools import Pool
from sim.service.service import Retry, Transfer, serve

STEP = Affine(base=8e6, per_sequence=1e5, per_prefill_token=1e4)


def one(*engines, router=None, cost=Unit(10)):  # noqa: B008
    """A pool of these engines."""
    return Pool([(each, cost) for each in engines], router or routers.RoundRobin())


def failing(fate, *times):
    """Outages (replica, start, how long)."""
    when = {}
    for replica, start, lasts in times:
        when.setdefault(replica, []).append((start, lasts))
    return Outages({replica: iter(each) for replica, each in when.items()}, fate)


def after(*pauses):
    """Clients that try again after these pauses, one after the other."""
    return Retry(len(pauses) + 1, lambda request, attempts: pauses[attempts - 1])


def rows(served):
    """The requests by id, as their clients see them."""
    return client_frame(served.logs, served.service_log).set_index("id")


def told(served):
    """The summary."""
    return summary(served.logs, service_log=served.service_log)


def spent(served):
    """Slot-nanoseconds by row, those that are not zero."""
    return {row: round(time * 1e9) for row, time in told(served)["slot_seconds"].items() if time and row != "bought"}


# ------------------------------------------------------------------ trying again


def test_a_request_turned_away_comes_again_and_its_times_count_from_the_first():
    # One slot, one place in the queue. c comes at 2, is rejected and comes again at 42, when a (to 30) and b (to 40)
    # are done: it runs from 42 to 52.
    requests = [job("a", 3), job("b", 1, arrival=1), job("c", 1, arrival=2)]
    served = serve(requests, [one(engine(slots=1, queue_limit=1))], retry=after(40))
    frame = rows(served)
    assert frame.status.tolist() == ["finished"] * 3
    assert frame.attempts.to_dict() == {"a": 1, "b": 1, "c": 2}
    assert (frame.e2e_s["c"], frame.ttft_s["c"], frame.wait_s["c"]) == pytest.approx((50e-9, 50e-9, 40e-9))
    found = told(served)
    assert found["requests"]["rejected"] == 0
    assert found["service"]["attempts"] == 4
    assert found["service"]["finished_by_retry"] == 1
    assert found["slot_steps"]["wasted"] == 0


def test_who_is_turned_away_every_time_is_rejected_with_the_reason_and_injected_once():
    requests = [job("a", 9), job("b", 1, arrival=1), job("c", 1, arrival=2)]
    served = serve(requests, [one(engine(slots=1, queue_limit=1))], retry=after(3, 4))
    found = told(served)
    assert (found["requests"]["injected"], found["requests"]["rejected"]) == (3, 1)
    assert found["rejections"] == {"queue is full": 1}
    assert found["service"]["most_attempts"] == 3
    assert rows(served).ended_ns["c"] == 2 + 3 + 4


def test_what_could_never_run_is_not_tried_again():
    served = serve([job("a", 99)], [one(engine(slots=1, pages=1))], retry=after(3))
    assert told(served)["rejections"] == {"needs more pages than exist": 1}
    assert told(served)["service"]["attempts"] == 1


def test_what_an_attempt_did_that_timed_out_is_wasted_and_the_next_one_starts_over():
    # a runs to 20. b is admitted then, has two tokens at 45 and times out; its slot is free at 50. It comes again at
    # 50 and has its three tokens at 60, 70, 80.
    requests = [job("a", 2), Request("b", 0, 1, 3, patience=Patience(timeout=45))]
    served = serve(requests, [one(engine(slots=1))], retry=after(5))
    frame = rows(served)
    assert frame.tokens.to_dict() == {"a": 2, "b": 3}
    assert (frame.wait_s["b"], frame.ttft_s["b"], frame.e2e_s["b"]) == pytest.approx((50e-9, 60e-9, 80e-9))
    assert frame.tpot_s["b"] == pytest.approx(10e-9)
    assert booked(told(served)) == {"prefill": 2, "decode": 3, "wasted": 3}
    assert told(served)["tokens"]["output"] == 2 + 2 + 3


def test_time_outs_count_anew_for_every_attempt_and_the_client_gives_up_once():
    requests = [
        Request("a", 0, 1, 9, patience=Patience(timeout=25)),
        Request("b", 0, 1, 9, patience=Patience(timeout=25, cancel_after=27)),
    ]
    served = serve(requests, [one(engine(slots=2))], retry=after(5))
    frame = rows(served)
    assert frame.status.to_dict() == {"a": "timed_out", "b": "cancelled"}
    assert frame.ended_ns.to_dict() == {"a": 25 + 5 + 25, "b": 27}
    assert frame.attempts.to_dict() == {"a": 2, "b": 1}
    # a: steps to 30 and from 30 to 60; b: to 30.
    assert booked(told(served)) == {"wasted": 9, "no_demand": 3}


def test_a_request_between_two_attempts_keeps_its_place_in_the_window():
    requests = [Request("a", 0, 1, 9, patience=Patience(timeout=25)), job("b", 1)]
    served = serve(Window(requests, 1), [one(engine(slots=1))], retry=after(50))
    assert rows(served).queued_ns.to_dict() == {"a": 0, "b": 25 + 50 + 25}


# ------------------------------------------------------------------ failures


def test_a_failure_without_retry_loses_the_request_and_says_so():
    # Steps of 10 for one slot. The replica fails at 25, in its third step: two were for nothing, and from 20 to 45
    # the slot is down.
    served = serve([job("a", 5)], [one(engine(slots=1))], outages=failing(Kind.INTERRUPTED, (0, 25, 20)))
    found = told(served)
    assert found["rejections"] == {"its replica failed": 1}
    assert found["service"]["interrupted"] == found["service"]["outages"] == 1
    assert booked(found) == {"wasted": 2}
    assert spent(served) == {"wasted": 20, "down": 5}  # the last end is at 25
    assert found["replicas"][0]["requests"]["interrupted"] == 1


def test_a_lost_request_comes_again_and_waits_at_the_router_until_somebody_is_up():
    served = serve(
        [job("a", 5)], [one(engine(slots=1))], retry=after(1), outages=failing(Kind.INTERRUPTED, (0, 25, 20))
    )
    frame = rows(served)
    assert frame.router_wait_s["a"] == pytest.approx(19e-9)  # from 26 to 45
    assert frame.ended_ns["a"] == 95
    assert (frame.ttft_s["a"], frame.e2e_s["a"]) == pytest.approx((55e-9, 95e-9))
    assert spent(served) == {"wasted": 20, "down": 25, "prefill": 10, "decode": 40}
    assert told(served)["service"]["held"] == 1


def test_work_that_stays_is_computed_again_after_the_restart():
    # Tokens at 10 and 20; from 45 a step computes the three known ones again: tokens at 55, 65, 75.
    served = serve([job("a", 5)], [one(engine(slots=1))], outages=failing(Kind.PREEMPTED, (0, 25, 20)))
    frame = rows(served)
    assert (frame.ended_ns["a"], frame.tokens["a"], frame.preemptions["a"]) == (75, 5, 1)
    assert frame.ttft_s["a"] == pytest.approx(10e-9)
    assert frame.max_itl_s["a"] == pytest.approx(35e-9)
    assert booked(told(served)) == {"prefill": 1, "decode": 3, "recomputed": 1}
    assert told(served)["tokens"]["recomputed"] == 2
    assert spent(served)["down"] == 25


def test_work_that_moves_goes_on_with_its_tokens_elsewhere():
    # Tokens at 10 and 20 on the first replica; at 25 the second computes what is known again: 35, 45, 55.
    served = serve([job("a", 5)], [one(engine(slots=1), engine(slots=1))], outages=failing(Kind.MOVED, (0, 25, 1000)))
    frame = rows(served)
    assert (frame.ended_ns["a"], frame.tokens["a"], frame.attempts["a"], frame.replica["a"]) == (55, 5, 1, 1)
    assert (frame.ttft_s["a"], frame.tpot_s["a"]) == pytest.approx((10e-9, 45e-9 / 4))
    assert frame.max_itl_s["a"] == pytest.approx(15e-9)
    found = told(served)
    assert found["itl_s"]["n"] == 4
    assert booked(found) == {"prefill": 1, "decode": 3, "recomputed": 1}
    # 5 positions are needed, and 2 that the first replica had were computed again.
    assert (found["tokens"]["computed"], found["tokens"]["recomputed"]) == (7, 2)
    assert found["service"]["moved"] == 1


def test_what_a_failure_lost_of_a_prompt_that_was_sent_along_is_wasted_once():
    # A prompt computed on the first replica from 0 to 10 goes to the second, which fails at 12, starts at 13 and
    # computes the prompt again, until the request times out at 15. Both steps are wasted, nothing is left over.
    pools = [one(engine(slots=1)), one(engine(slots=1))]
    request = Request("a", 0, 1, 3, patience=Patience(timeout=15))
    served = serve([request], pools, outages=failing(Kind.PREEMPTED, (1, 12, 1)), transfer=Transfer(0, 0.0))
    assert booked(told(served)) == {"wasted": 2}


def test_those_who_wait_move_too_and_nobody_goes_to_a_replica_that_is_down():
    requests = [*(job(name, 3) for name in "abcd"), job("e", 1, arrival=12)]
    served = serve(requests, [one(engine(slots=1), engine(slots=1))], outages=failing(Kind.MOVED, (1, 11, 1000)))
    # a and c came to the first, b and d to the second; at 11 these go to the first, behind c, and e goes there.
    assert [log.requests[-1].id for log in served.logs] == ["e", "d"]
    assert [request.id for request in served.logs[0].requests] == ["a", "c", "b", "d", "e"]
    assert rows(served).status.tolist() == ["finished"] * 5
    assert times(served.logs[0], "finished") == {"a": 30, "c": 60, "b": 80, "d": 110, "e": 120}


def test_with_nobody_up_everybody_waits_for_the_first_to_be():
    requests = [job("a", 3), job("b", 1, arrival=12)]
    outages = failing(Kind.MOVED, (0, 5, 45), (1, 5, 15))
    served = serve(requests, [one(engine(slots=1), engine(slots=1))], outages=outages)
    assert [request.id for request in served.logs[1].requests] == ["a", "b"]
    assert rows(served).router_wait_s.tolist() == pytest.approx([15e-9, 8e-9])
    assert times(served.logs[1], "finished") == {"a": 50, "b": 60}


def test_outages_of_one_replica_that_overlap_are_one():
    outages = failing(Kind.PREEMPTED, (0, 5, 30), (0, 10, 5))
    served = serve([job("a", 1)], [one(engine(slots=1))], outages=outages)
    assert rows(served).ended_ns["a"] == 45
    assert told(served)["service"]["outages"] == 1


def test_outages_without_end_end_with_the_requests():
    def forever():
        start = 0
        while True:
            start += 40
            yield start, 10

    served = serve([job("a", 9)], [one(engine(slots=1))], outages=Outages({0: forever()}, Kind.PREEMPTED))
    # Tokens at 10, 20, 30, 40 (a step that ends at the instant of the failure has ended), 60, ... 90, 110.
    assert rows(served).ended_ns["a"] == 110
    assert told(served)["service"]["outages"] == 2


def test_a_prompt_is_wasted_as_one_though_the_next_plan_of_the_same_instant_preempts_it():
    """Six pages of four positions: both prompts take five. At depth 2 steps 0 and 1 are planned at 0.

    In step 1 each would begin a page: a gets the last one, b is preempted. The engine fails at 10, as step 0 ends.
    """
    both = engine(slots=2, budget=1000, page_size=4, pages=6, depth=2)
    requests = [Request("a", 0, 16, 2), Request("b", 0, 4, 21)]
    served = serve(requests, [one(both)], outages=failing(Kind.INTERRUPTED, (0, 10, 1)))
    found = told(served)["slot_steps"]
    assert {row: steps for row, steps in found.items() if steps} == {"bought": 2, "wasted": 2}


def test_a_failure_at_depth_two_takes_back_what_was_planned_ahead():
    # Steps of 10, the next one planned at the start of each. At 25 the third runs and the fourth is planned: the
    # client has two tokens, and after the restart at 45 the other three, at 55, 65, 75.
    served = serve([job("a", 5)], [one(engine(slots=1, depth=2))], outages=failing(Kind.PREEMPTED, (0, 25, 20)))
    frame = rows(served)
    assert (frame.tokens["a"], frame.ended_ns["a"]) == (5, 75)
    assert booked(told(served)) == {"prefill": 1, "decode": 3, "recomputed": 1}


# ------------------------------------------------------------------ pools


def handed_over(requests, prefill=None, decode=None, latency=5, per_token=0.5, **more):
    """A service of two pools."""
    pools = [one(*(prefill or [engine(slots=4)])), one(*(decode or [engine(slots=4)]))]
    return serve(requests, pools, transfer=Transfer(latency, per_token), **more)


def test_a_request_is_prefilled_here_and_decoded_there():
    # The prompt and the first token: 0 to 10. 32 positions take 16, and 5 more: 31. Two more tokens: 41, 51.
    served = handed_over([job("a", 3, prompt=32)])
    frame = rows(served)
    assert (frame.ended_ns["a"], frame.tokens["a"], frame.replica["a"]) == (51, 3, 1)
    assert (frame.ttft_s["a"], frame.tpot_s["a"], frame.transfer_s["a"]) == pytest.approx((10e-9, 20.5e-9, 21e-9))
    assert frame.max_itl_s["a"] == pytest.approx(31e-9)
    found = told(served)
    assert booked(found) == {"prefill": 1, "decode": 2, "no_demand": 9}
    # 34 positions computed once each; two pages of 16 for the prompt here, three with the new tokens there.
    assert (found["tokens"]["computed"], found["tokens"]["recomputed"]) == (34, 0)
    assert [int(log.held_by_step().max()) for log in served.logs] == [2, 3]
    assert found["service"]["transfers"] == 1


def test_transfers_of_one_replica_queue_on_its_link():
    served = handed_over([job("a", 2, prompt=32), job("b", 2, prompt=32)])
    assert rows(served).transfer_s.tolist() == pytest.approx([21e-9, 37e-9])
    assert rows(served).ended_ns.tolist() == [41, 57]


def test_what_is_handed_over_queues_for_a_slot_and_pages():
    # a decodes from 31 in the only slot, to 51; b is there at 47, and its prompt is not computed again.
    served = handed_over([job("a", 3, prompt=32), job("b", 3, prompt=32)], decode=[engine(slots=1)])
    assert times(served.logs[1], "admitted") == {"a": 31, "b": 51}
    assert rows(served).ended_ns.tolist() == [51, 71]
    assert told(served)["tokens"]["computed"] == 2 * 34


def test_an_answer_of_one_token_stays_where_it_is():
    served = handed_over([job("a", 1, prompt=32)])
    assert rows(served).ended_ns["a"] == 10
    assert not served.logs[1].requests


def test_who_gives_up_on_the_way_has_all_its_work_wasted():
    served = handed_over([Request("a", 0, 32, 3, patience=Patience(timeout=20))])
    assert rows(served).status["a"] == "timed_out"
    assert (rows(served).ended_ns["a"], rows(served).tokens["a"]) == (20, 1)
    assert booked(told(served)) == {"wasted": 1, "no_demand": 3}


def test_what_the_decoding_pool_could_never_hold_is_rejected_at_once():
    served = handed_over([job("a", 30, prompt=32)], decode=[engine(slots=1, pages=3)])
    assert told(served)["rejections"] == {"needs more pages than exist": 1}
    assert not served.logs[0].requests


def test_work_that_moves_from_a_decoder_goes_back_to_be_prefilled():
    # b's KV arrives at 31; its second token is there at 41. At 45 the decoder fails: the 33 positions and the tokens
    # known are prefilled again from 45 to 55, which brings the third; 34 positions take 17 and 5: 77. The last: 87.
    served = handed_over([job("b", 4, prompt=32)], decode=[engine(slots=1), engine(slots=1)],
                         outages=failing(Kind.MOVED, (1, 45, 1000)))  # fmt: skip
    frame = rows(served)
    assert (frame.tokens["b"], frame.ended_ns["b"]) == (4, 87)
    assert [log.requests[0].id for log in served.logs if log.requests] == ["b", "b", "b"]
    assert booked(told(served))["recomputed"] == 1
    assert told(served)["service"]["moved"] == 1


def test_pools_need_a_transfer_and_engines_that_can_stop_in_the_middle():
    with pytest.raises(ValueError, match="two pools need a transfer"):
        serve([job("a", 1)], [one(engine(slots=1)), one(engine(slots=1))])
    with pytest.raises(ValueError, match="two pools need continuous batching and evict 'before'"):
        handed_over([job("a", 1)], decode=[engine(slots=1, evict="after")])


# ------------------------------------------------------------------ any service


def poisson(rate, count, seed, output=40):
    """Requests at so many per second, of 100 prompt tokens and geometric outputs."""
    draws = np.random.default_rng(seed)
    arrivals = np.cumsum(draws.exponential(1e9 / rate, count)).astype(int)
    outputs = draws.geometric(1 / output, count)
    return [
        Request(
            f"{seed}-{number}",
            int(arrival),
            100,
            int(tokens),
            patience=Patience(cancel_after=None if number % 7 else 10**9),
        )
        for number, (arrival, tokens) in enumerate(zip(arrivals, outputs, strict=True))
    ]


def test_one_replica_in_a_service_is_the_single_engine():
    requests = poisson(50, 300, seed=1)
    alone = run(requests, engine(slots=4), STEP)
    served = serve(requests, [one(engine(slots=4), cost=STEP)], retry=after(1))
    (log,) = served.logs
    assert log.sha256() == alone.sha256()
    assert told(served)["log_sha256"] == summary(alone)["log_sha256"]


def test_a_request_goes_to_a_replica_that_it_fits_on():
    served = serve(
        [job("a", 100, prompt=100), job("b", 100, prompt=100), job("c", 1)],
        [one(engine(slots=1, pages=5), engine(slots=1))],
    )
    assert [[request.id for request in log.requests] for log in served.logs] == [["c"], ["a", "b"]]


@pytest.mark.no_cover
def test_macro_steps_keep_their_gain_in_a_service_of_eight():
    def steps_per_run(replicas):
        requests = poisson(5 * replicas, 150 * replicas, seed=5, output=300)
        engines = [engine(slots=64) for _ in range(replicas)]
        outages = failing(Kind.MOVED, *((n, 10**10, 10**9) for n in range(0, replicas, 3)))
        served = serve(requests, [one(*engines, router=routers.Uniform(1), cost=STEP)], outages=outages)
        return sum(log.steps for log in served.logs) / sum(len(log.run_table()["steps"]) for log in served.logs)

    assert steps_per_run(8) == pytest.approx(steps_per_run(1), rel=0.2)


def test_the_failure_of_one_of_two_loses_no_request_silently():
    requests = poisson(12, 400, seed=3)
    for fate in (Kind.PREEMPTED, Kind.MOVED, Kind.INTERRUPTED):
        engines = [engine(slots=4) for _ in range(2)]
        outages = failing(fate, (0, 5 * 10**9, 4 * 10**9), (1, 20 * 10**9, 10**9))
        served = serve(requests, [one(*engines, cost=STEP)], outages=outages)
        counts = dict(told(served)["requests"])
        assert counts.pop("injected") == 400 == sum(counts.values())
        lost = told(served)["service"]["interrupted"]
        assert counts["rejected"] == lost
        assert (lost > 0) == (fate == Kind.INTERRUPTED)
