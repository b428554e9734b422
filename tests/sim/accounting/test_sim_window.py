"""Rates by either count, how many requests there are at once, and the figures of a measuring window: by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sim_stories import engine, job, run, static_engine

from sim.accounting.metrics import summary
from sim.accounting.rates import by_gaps, over_span
from sim.accounting.window import measured
from sim.cost.forms import Unit
from sim.request import Patience, Request
from sim.service.clients import OpenLoop, Window
from sim.service.cluster import simulate_cluster
from sim.service.pools import Pool
from sim.service.service import Retry, serve


def stream():
    """Steps of 10 in one slot. a (0) runs to 20, b (5) to 40, c (15) to 50, d (60) to 80, e (60) to 100."""
    arrivals = {"a": (0, 2), "b": (5, 2), "c": (15, 1), "d": (60, 2), "e": (60, 2)}
    return [job(name, output, arrival=arrival) for name, (arrival, output) in arrivals.items()]


def test_rates_are_named_by_what_they_count():
    # Five wanted from 0 to 60: five over 60, or four gaps over 60. Five finished in 100, four gaps from 20 to 100.
    rates = summary(run(stream(), engine(slots=1), Unit(10)))["rates"]
    assert rates["offered_per_s"] == pytest.approx(5 / 60e-9)
    assert rates["offered_by_gaps_per_s"] == pytest.approx(4 / 60e-9)
    assert rates["finished_per_s"] == pytest.approx(5 / 100e-9)
    assert rates["finished_by_gaps_per_s"] == pytest.approx(4 / 80e-9)


@pytest.mark.parametrize("arrivals", [[], [3], [3, 3]])
def test_there_is_no_rate_without_time(arrivals):
    log = run([job(str(place), 1, arrival=at) for place, at in enumerate(arrivals)], engine(slots=1), Unit(10))
    assert summary(log)["rates"]["offered_per_s"] is summary(log)["rates"]["offered_by_gaps_per_s"] is None


def test_what_a_window_holds_back_is_offered_all_the_same():
    found = summary(run(Window(stream(), 1), engine(slots=1), Unit(10)))
    assert found["rates"]["offered_per_s"] == pytest.approx(5 / 60e-9)
    assert found["concurrency"]["in_flight_peak"] == 1


def test_requests_in_flight_and_running_at_the_peak():
    # At 15 a runs, b and c wait. In flight for 20, 35, 35, 20 and 40 of 100; running for 90.
    found = summary(run(stream(), engine(slots=1), Unit(10)))["concurrency"]
    assert found == pytest.approx(
        {"in_flight_peak": 3, "in_flight_mean": 1.5, "running_peak": 1, "running_mean": 0.9}
    )


def test_a_place_that_is_taken_over_counts_once():
    found = summary(run([job("a", 2), job("b", 2, arrival=20)], engine(slots=4), Unit(10)))["concurrency"]
    assert (found["in_flight_peak"], found["running_peak"]) == (1, 1)


def test_the_peak_is_that_of_all_replicas_at_one_instant():
    # One replica runs from 0 to 30, the other from 40 to 50.
    class InTurn:
        def choose(self, request, loads, sent):
            return int(request.id == "b")

    logs = simulate_cluster(
        [job("a", 3), job("b", 1, arrival=40)], [(engine(slots=2), Unit(10)) for _ in range(2)], InTurn()
    )
    assert summary(logs)["concurrency"]["running_peak"] == 1


def test_a_preempted_request_is_in_flight_and_does_not_run():
    # 4 pages of 2: at 10 b finds no page and waits until a ends.
    scheduler = engine(slots=2, pages=4, page_size=2)
    log = run([job("a", 3, prompt=3), job("b", 3, prompt=4)], scheduler, Unit(10))
    frame_ends = log.event_table()[:, 0].max()
    found = summary(log)["concurrency"]
    assert found["in_flight_peak"] == found["running_peak"] == 2
    assert found["running_mean"] < found["in_flight_mean"]
    assert found["in_flight_mean"] == pytest.approx((30 + frame_ends) / frame_ends)


def test_the_window_has_its_own_figures():
    # From 10 to 60 c is wanted, at 15; a, b and c finish; tokens come at 20, 30, 40 and 50.
    log = run(stream(), engine(slots=1), Unit(10))
    found = measured([log], 10, 60, {"e2e": 30})
    assert (found["from_s"], found["to_s"], found["run_ended_s"]) == pytest.approx((10e-9, 60e-9, 100e-9))
    assert found["requests"] == summary(log)["requests"] | {"injected": 1, "finished": 1}
    assert found["rates"] == pytest.approx(
        {
            "offered_per_s": 1 / 50e-9,
            "offered_by_gaps_per_s": None,
            "finished_per_s": 3 / 50e-9,
            "finished_by_gaps_per_s": 2 / 30e-9,
            "output_tokens_per_s": 4 / 50e-9,
        }
    )
    assert found["concurrency"] == pytest.approx(
        {"in_flight_peak": 3, "in_flight_mean": (10 + 30 + 35) / 50, "running_peak": 1, "running_mean": 40 / 50}
    )
    # c takes 35 and misses; of those that finish in the window only a is within 30.
    assert found["attainment"] == 0
    assert found["goodput_per_s"] == pytest.approx(1 / 50e-9)
    assert (found["e2e_s"]["n"], found["e2e_s"]["max"]) == (1, pytest.approx(35e-9))
    assert found["max_itl_s"]["n"] == 0


def test_a_window_to_the_end_and_one_beyond_it():
    log = run(stream(), engine(slots=1), Unit(10))
    assert measured([log], 60, None)["to_s"] == pytest.approx(100e-9)
    beyond = measured([log], 200, 400)
    assert beyond["requests"]["injected"] == 0
    assert beyond["rates"]["offered_per_s"] == beyond["concurrency"]["in_flight_peak"] == 0
    assert beyond["attainment"] is None
    nothing = measured([log], 200, None)
    assert nothing["rates"]["offered_per_s"] is None


def test_by_gaps_is_smaller_by_one_request():
    times = run(stream(), engine(slots=1), Unit(10)).event_table()[:, 0]
    assert by_gaps(times) == pytest.approx(over_span(times) * (len(times) - 1) / len(times))


@given(
    arrivals=st.lists(st.tuples(st.integers(0, 300), st.integers(1, 12)), min_size=1, max_size=20),
    slots=st.integers(1, 4),
    mode=st.sampled_from(["plain", "depth 2", "static", "tight", "retry"]),
    limits=st.sampled_from([{}, {"timeout": 40}, {"cancel_after": 33}]),
)
def test_running_never_exceeds_the_slots_and_means_are_times_over_the_makespan(arrivals, slots, mode, limits):
    requests = [
        Request(str(place), at, 3, output, patience=Patience(**limits))
        for place, (at, output) in enumerate(sorted(arrivals))
    ]
    pages = {"tight": 8}.get(mode, 1000)
    service_log = None
    if mode == "retry":
        pool = Pool([(engine(slots=slots, queue_limit=1), Unit(10))])
        ran = serve(OpenLoop(requests), [pool], retry=Retry(2, lambda *_: 7))
        log, service_log = ran.logs[0], ran.service_log
    elif mode == "static":
        log = run(requests, static_engine(slots), Unit(10))
    else:
        log = run(requests, engine(slots, pages=pages, page_size=2, depth=1 + (mode == "depth 2")), Unit(10))
    found = summary(log, service_log=service_log)
    at_once = found["concurrency"]
    assert 0 <= at_once["running_peak"] <= min(slots, at_once["in_flight_peak"])
    assert at_once["in_flight_peak"] <= len(requests)
    whole = measured([log], 0, None, service_log=service_log)
    assert whole["requests"] == found["requests"]
    assert whole["concurrency"]["running_peak"] == at_once["running_peak"]
    assert whole["e2e_s"] == found["e2e_s"]
    assert whole["rates"]["output_tokens_per_s"] * whole["to_s"] == pytest.approx(found["tokens"]["output"])
    assert whole["rates"]["finished_per_s"] * whole["to_s"] == pytest.approx(found["requests"]["finished"])
