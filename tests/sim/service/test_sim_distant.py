"""What distant clients do counts from when they do it: giving up, going on, sending again."""

from __future__ import annotations

import pytest
from sim_stories import booked, engine, job, run, times

from policies.routers import RoundRobin
from sim.accounting.frames import client_frame, requests_frame
from sim.accounting.metrics import summary
from sim.cost.forms import Unit
from sim.request import Patience, Request
from sim.service.clients import ClosedLoop, Distant, OpenLoop, Window
from sim.service.cluster import simulate_cluster
from sim.service.pools import Pool
from sim.service.service import Retry, serve
from sim.service.sessions import SessionCounts, Sessions, counts


def hasty(name, output, after, arrival=0, **more):
    """A request whose client gives up so long after sending it."""
    return Request(name, arrival, 1, output, patience=Patience(cancel_after=after), **more)


def served(clients, retry=None, slots=4):
    """The requests of these clients, by id, and the summary."""
    ran = serve(clients, [Pool([(engine(slots=slots, queue_limit=1), Unit(10))])], retry=retry)
    return client_frame(ran.logs, ran.service_log).set_index("id"), summary(ran.logs, service_log=ran.service_log)


@pytest.mark.parametrize("macro", [True, False])
def test_a_client_gives_up_so_long_after_sending_not_after_the_arrival(macro):
    # 4 on the way, steps of 10: tokens at 14 and 24, and the client gives up at 33, before the third.
    log = run(Distant(OpenLoop([hasty("a", 100, after=33)]), 4), engine(slots=1), Unit(10), macro)
    assert times(log, "cancelled") == {"a": 33}
    assert requests_frame(log)["tokens"].tolist() == [2]


@pytest.mark.parametrize("after", [1, 3, 4])
def test_who_gives_up_on_the_way_costs_no_step(after):
    # a is there at 4, when nobody waits for it any more; b runs from 4 to 24 in the only slot.
    requests = [hasty("a", 100, after), job("b", 2)]
    log = run(Distant(OpenLoop(requests), 4), engine(slots=1), Unit(10))
    assert times(log, "cancelled") == {"a": 4}
    assert times(log, "finished") == {"b": 24}
    found = summary(log)
    assert (found["requests"]["cancelled"], found["requests"]["finished"]) == (1, 1)
    assert booked(found) == {"prefill": 1, "decode": 1}
    assert log.sha256() == run(Distant(OpenLoop(requests), 4), engine(slots=1), Unit(10), macro=False).sha256()


def test_one_that_is_given_up_on_its_way_is_an_entry_of_the_replica_it_came_to():
    requests = [hasty("a", 100, after=2), job("b", 2), job("c", 2)]
    replicas = [(engine(slots=1), Unit(10)) for _ in range(2)]
    logs = simulate_cluster(Distant(OpenLoop(requests), 4), replicas, RoundRobin())
    assert [[request.id for request in log.requests] for log in logs] == [["a", "c"], ["b"]]
    assert summary(logs)["requests"]["cancelled"] == 1


def test_a_closed_client_goes_on_when_it_has_given_up():
    # a is given up at 3, 5 of thinking: b is sent at 8, is there at 12 and ends at 22.
    clients = Distant(ClosedLoop([hasty("a", 9, after=3), job("b", 1)], 1, [5, 5]), 4)
    log = run(clients, engine(slots=4), Unit(10))
    assert times(log, "cancelled") == {"a": 4}
    assert times(log, "finished") == {"b": 22}


def test_a_window_has_a_free_place_when_a_request_is_given_up_on_its_way():
    log = run(Distant(Window([hasty("a", 9, after=3), job("b", 1)], 1), 4), engine(slots=4), Unit(10))
    assert times(log, "queued") == {"a": 4, "b": 7}


def test_a_session_ends_once_with_a_turn_that_is_given_up_on_its_way():
    turns = [hasty("a1", 9, after=3, session="a"), Request("a2", 0, 1, 1, session="a", think=0)]
    clients = Distant(Sessions([turns]), 4)
    log = run(clients, engine(slots=4), Unit(10))
    assert [request.id for request in log.requests] == ["a1"]
    assert counts(clients) == SessionCounts(begun=1, completed=0, unsent_turns=1)


def test_in_a_service_it_is_the_same():
    # a is given up at 3, on its way; b at 33 with two tokens; c is sent then in a window of two, when a is gone.
    requests = [hasty("a", 9, after=3), hasty("b", 9, after=33), job("c", 1)]
    frame, found = served(Distant(Window(requests, 2), 4))
    assert frame["status"].to_dict() == {"a": "cancelled", "b": "cancelled", "c": "finished"}
    assert frame["ended_ns"].to_dict() == {"a": 4, "b": 33, "c": 24}
    assert frame["tokens"].to_dict() == {"a": 0, "b": 2, "c": 1}
    assert found["requests"]["injected"] == 3


def test_every_attempt_is_on_its_way_as_long_as_the_first():
    # One slot, one place in the queue. At 4 a has it, b and c are rejected; they are sent again at 9. At 13 a runs
    # (to 34), b has the place and c is rejected; it is sent again at 33 and there at 37, when b runs (to 44).
    requests = [job("a", 3), job("b", 1), job("c", 1)]
    pauses = (5, 20)
    retry = Retry(3, lambda _, attempts: pauses[attempts - 1])
    frame, _ = served(Distant(OpenLoop(requests), 4), retry, slots=1)
    assert frame["attempts"].to_dict() == {"a": 1, "b": 2, "c": 3}
    assert frame["ended_ns"].to_dict() == {"a": 34, "b": 44, "c": 54}


def test_time_outs_are_the_services_and_count_from_the_queue():
    requests = [
        Request("a", 0, 1, 9, patience=Patience(timeout=25)),
        Request("b", 0, 1, 9, patience=Patience(queue_timeout=25)),
    ]
    log = run(Distant(OpenLoop(requests), 40), engine(slots=1), Unit(10))
    assert times(log, "timed_out") == {"a": 65, "b": 65}
