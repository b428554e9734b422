"""Latencies and objectives from when the client wanted to send, beside those from when the request was sent."""

from __future__ import annotations

import numpy as np
import pytest
from sim_stories import engine, job, run

from sim.accounting.frames import client_frame, requests_frame
from sim.accounting.metrics import summary
from sim.cost.forms import Unit
from sim.request import Request
from sim.service.clients import ClosedLoop, Distant, OpenLoop, Window
from sim.service.pools import Pool
from sim.service.service import Retry, serve
from sim.service.sessions import Sessions


def counted(frame, column):
    """A latency of each request by id, in ns; None where it has none."""
    return {
        name: None if np.isnan(value) else round(value * 1e9)
        for name, value in zip(frame["id"], frame[column], strict=True)
    }


def test_on_schedule_a_request_is_wanted_when_it_is_sent():
    frame = requests_frame(run(OpenLoop([job("a", 3), job("b", 2, arrival=7)]), engine(slots=1), Unit(10)))
    for latency in ("ttft_s", "e2e_s"):
        assert counted(frame, f"client_{latency}") == counted(frame, latency)
    assert counted(frame, "client_admission_s") == counted(frame, "wait_s") == {"a": 0, "b": 23}


def test_what_a_window_holds_back_counts_from_its_arrival():
    # Steps of 10, one in flight: b arrives at 5, is sent at 30 and ends at 50.
    frame = requests_frame(run(Window([job("a", 3), job("b", 2, arrival=5)], 1), engine(slots=4), Unit(10)))
    assert counted(frame, "ttft_s") == {"a": 10, "b": 10}
    assert counted(frame, "e2e_s") == {"a": 30, "b": 20}
    assert counted(frame, "client_admission_s") == {"a": 0, "b": 25}
    assert counted(frame, "client_ttft_s") == {"a": 10, "b": 35}
    assert counted(frame, "client_e2e_s") == {"a": 30, "b": 45}


def test_a_distant_closed_client_wants_the_next_when_it_has_thought_and_its_delay_is_in():
    # One client, 5 of thinking, 4 on the way, steps of 10: a is wanted at 0, is there at 4 and ends at 24; b is
    # wanted at 29, is there at 33 and ends at 43.
    clients = Distant(ClosedLoop([job("a", 2), job("b", 1, arrival=999)], 1, [5, 5]), 4)
    frame = requests_frame(run(clients, engine(slots=4), Unit(10)))
    assert frame["ended_ns"].tolist() == [24, 43]
    assert counted(frame, "client_ttft_s") == {"a": 14, "b": 14}
    assert counted(frame, "client_e2e_s") == {"a": 24, "b": 14}


def test_a_later_turn_of_a_distant_session_likewise():
    turns = [Request("a1", 3, 1, 2, session="a"), Request("a2", 3, 1, 1, session="a", think=5)]
    frame = requests_frame(run(Distant(Sessions([turns]), 4), engine(slots=4), Unit(10)))
    assert frame["ended_ns"].tolist() == [27, 46]
    assert counted(frame, "client_e2e_s") == {"a1": 24, "a2": 14}


def test_a_request_that_is_tried_again_counts_from_its_first_try():
    # One slot, one place in the queue, 3 on the way: c is wanted at 2, there at 5, rejected, sent again at 45 and
    # there at 48, when a (to 33) and b (to 43) are done.
    requests = [job("a", 3), job("b", 1, arrival=1), job("c", 1, arrival=2)]
    pool = Pool([(engine(slots=1, queue_limit=1), Unit(10))])
    served = serve(Distant(OpenLoop(requests), 3), [pool], retry=Retry(2, lambda *_: 40))
    frame = client_frame(served.logs, served.service_log)
    assert frame["attempts"].tolist() == [1, 1, 2]
    assert frame["ended_ns"].tolist() == [33, 43, 58]
    assert counted(frame, "client_e2e_s")["c"] == 56
    assert counted(frame, "e2e_s")["c"] == 53


@pytest.mark.parametrize(
    ("objectives", "wanted", "sent"),
    [({"wait": 0}, 1, 2), ({"ttft": 34}, 1, 2), ({"e2e": 44}, 1, 2), ({"e2e": 45}, 2, 2), ({"tpot": 10}, 2, 2)],
)
def test_attainment_and_goodput_count_from_when_they_are_asked_to(objectives, wanted, sent):
    log = run(Window([job("a", 3), job("b", 2, arrival=5)], 1), engine(slots=4), Unit(10))
    for since, met in (("wanted", wanted), ("sent", sent)):
        found = summary(log, objectives, since=since)
        assert found["objectives_from"] == since
        assert found["attainment"] == met / 2
        assert found["goodput_per_s"] == pytest.approx(met / 50e-9)
    assert summary(log, objectives)["objectives_from"] == "wanted"


def test_the_summary_has_both_for_all_and_for_each_tenant():
    requests = [job("a", 3), job("b", 2, arrival=5, tenant="other")]
    found = summary(run(Window(requests, 1), engine(slots=4), Unit(10)))
    assert (found["ttft_s"]["max"], found["client_ttft_s"]["max"]) == pytest.approx((10e-9, 35e-9))
    assert (found["e2e_s"]["max"], found["client_e2e_s"]["max"]) == pytest.approx((30e-9, 45e-9))
    assert found["tenants"]["other"]["client_e2e_s"]["mean"] == pytest.approx(45e-9)
    assert found["objectives_from"] is None
