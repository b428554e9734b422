"""Clients that react: a window of requests in flight, and clients that send the next when they have their answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sim_stories import engine, job, run, times

from policies.registry import build
from sim.accounting.frames import requests_frame
from sim.accounting.metrics import summary
from sim.cost.forms import Unit
from sim.request import Request
from sim.service.clients import ClosedLoop, Distant, OpenLoop, Window


def waits(log):
    """How long each request was held back by its client, in ns."""
    frame = requests_frame(log)
    return dict(zip(frame.id, (frame.client_wait_s * 1e9).round().astype(int), strict=True))


def test_a_window_holds_back_what_comes_too_soon_and_shows_it_apart():
    # Four requests of 3 tokens at 0, steps of 10, slots enough, two in flight: c and d are sent at 30, when two end.
    log = run(Window([job(name, 3) for name in "abcd"], size=2), engine(slots=4), Unit(10))
    assert times(log, "queued") == {"a": 0, "b": 0, "c": 30, "d": 30}
    assert times(log, "finished") == {"a": 30, "b": 30, "c": 60, "d": 60}
    assert waits(log) == {"a": 0, "b": 0, "c": 30, "d": 30}
    found = summary(log)
    assert found["wait_s"]["max"] == 0
    assert found["e2e_s"]["max"] == pytest.approx(30e-9)
    assert found["client_wait_s"]["mean"] == pytest.approx(15e-9)


def test_a_rejected_request_takes_no_place_in_the_window():
    requests = [job("a", 2), job("too long", 100), job("b", 2)]
    log = run(Window(requests, size=1), engine(slots=1, pages=1), Unit(10))
    assert times(log, "rejected") == {"too long": 20}
    assert times(log, "finished") == {"a": 20, "b": 40}


def test_each_client_of_a_closed_loop_waits_for_its_answer_and_thinks():
    # Two clients, two slots, steps of 10, thinking 5. The first sends a (2 steps) at 0, the second b (4 steps).
    # a ends at 20, c is sent at 25 and admitted at the boundary of b's third step, 30; it ends at 40, as b does.
    # The clients think to 45: d and e are sent, and nothing is left to send after them.
    requests = [job("a", 2), job("b", 4), job("c", 1), job("d", 1), job("e", 1)]
    log = run(ClosedLoop(requests, clients=2, think=[5] * 5), engine(slots=2), Unit(10))
    assert times(log, "queued") == {"a": 0, "b": 0, "c": 25, "d": 45, "e": 45}
    assert times(log, "admitted") == {"a": 0, "b": 0, "c": 30, "d": 45, "e": 45}
    assert times(log, "finished") == {"a": 20, "b": 40, "c": 40, "d": 55, "e": 55}


def test_a_client_whose_request_is_rejected_thinks_and_goes_on():
    requests = [job("too long", 100), job("a", 2)]
    log = run(ClosedLoop(requests, clients=1, think=[7, 7]), engine(slots=1, pages=1), Unit(10))
    assert times(log, "finished") == {"a": 27}


def test_a_closed_loop_never_has_more_in_the_engine_than_clients():
    log = run(ClosedLoop([job(str(i), 1 + i % 5) for i in range(40)], 3, [i % 4 for i in range(40)]), engine(slots=8))
    change = sorted([(time, 1) for time in times(log, "queued").values()]
                    + [(time, -1) for time in times(log, "finished").values()])  # fmt: skip
    present = highest = 0
    for _, step in change:
        present += step
        highest = max(highest, present)
    assert highest == 3
    assert summary(log)["requests"]["finished"] == 40


def test_a_distant_window_sends_the_next_when_it_hears_of_an_end():
    # Steps of 10, one in flight, 4 on the way: a is there at 4 and ends at 24; b sets out then and is there at 28.
    requests = [job("a", 2), job("b", 1)]
    log = run(Distant(Window(requests, 1), 4), engine(slots=2), Unit(10))
    assert times(log, "queued") == {"a": 4, "b": 28}
    assert times(log, "finished") == {"a": 24, "b": 38}
    assert waits(log) == {"a": 4, "b": 28}


def test_a_distant_client_hears_of_a_rejection_and_goes_on():
    requests = [job("too long", 100), job("a", 2)]
    for clients in (ClosedLoop(requests, 1, [7, 7]), Window(requests, 1)):
        react = 7 if isinstance(clients, ClosedLoop) else 0
        log = run(Distant(clients, 3), engine(slots=1, pages=1), Unit(10))
        assert times(log, "rejected") == {"too long": 3}
        assert times(log, "finished") == {"a": 3 + react + 3 + 20}


def test_distance_alone_moves_an_open_loop_in_time():
    requests = [job(str(i), 1 + i % 7, arrival=13 * i) for i in range(30)]
    near, far = (
        run(clients, engine(slots=2), Unit(10)) for clients in (OpenLoop(requests), Distant(OpenLoop(requests), 50))
    )
    assert times(far, "finished") == {name: time + 50 for name, time in times(near, "finished").items()}


def test_nobody_is_nearer_than_here():
    with pytest.raises(ValueError, match="delay is -1 ns; expected 0 or more"):
        Distant(OpenLoop([]), -1)


@pytest.mark.parametrize("clients", [lambda jobs: Window(jobs, 0), lambda jobs: ClosedLoop(jobs, 0, [])])
def test_nobody_in_flight_is_refused(clients):
    with pytest.raises(ValueError, match="is 0; expected at least 1"):
        clients([])


@given(
    sizes=st.lists(st.tuples(st.integers(1, 30), st.integers(1, 40), st.integers(0, 60)), min_size=1, max_size=25),
    width=st.integers(1, 6),
    depth=st.integers(1, 2),
    slots=st.integers(1, 4),
    closed=st.booleans(),
    delay=st.integers(0, 20),
)
def test_macro_steps_change_nothing_for_clients_that_react(sizes, width, depth, slots, closed, delay):
    def log(macro):
        arrival, requests = 0, []
        for number, (prompt, output, gap) in enumerate(sizes):
            arrival += gap
            requests.append(Request(str(number), arrival, prompt, output))
        clients = ClosedLoop(requests, width, [gap for *_, gap in sizes]) if closed else Window(requests, width)
        far = Distant(clients, delay) if delay else clients
        return run(far, engine(slots, budget=32, pages=24, page_size=4, depth=depth), Unit(7), macro=macro)

    assert log(True).sha256() == log(False).sha256()


@pytest.mark.parametrize("macro", [True, False])
@pytest.mark.parametrize("policy", ["fcfs", "vtc"])
def test_who_is_sent_by_the_plan_that_found_an_end_enters_with_the_next_one(policy, macro):
    # Steps of 10. a has its two tokens at 20, rides in the third step, and is found by the plan at 30, which lets c
    # go on alone for as long as it takes. Only now is b sent, at that very instant: it enters at 40.
    late = engine(slots=2, evict="after", harvest="next", order=build(policy, {}, seed=0))
    log = run(Window([job("a", 2), job("c", 30), job("b", 3)], 2), late, Unit(10), macro)
    assert times(log, "released")["a"] == times(log, "queued")["b"] == 30
    assert times(log, "admitted") == {"a": 0, "c": 0, "b": 40}


def test_a_wide_window_is_an_open_loop():
    requests = [job(str(i), 1 + i % 7, arrival=13 * i) for i in range(30)]
    wide = run(Window(requests, 1000), engine(slots=2), Unit(10))
    assert wide.sha256() == run(OpenLoop(requests), engine(slots=2), Unit(10)).sha256()
