"""Whether a queue grows: the statistic by hand, queues that have a bound, waits that macro-steps do not change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sim_stories import engine, job, run

from sim.accounting.queue_growth import CRITICAL, Waits, drift, grows, left_waiting
from sim.accounting.requests import RequestRecords
from sim.cost.forms import Unit
from sim.request import Patience

STEP = 1000
SEEDS = 16


def poisson(seed, load, count, output=20):
    """Requests for one slot at a share of what it can bear: M/D/1."""
    gaps = np.random.default_rng((3, seed)).exponential(STEP * output / load, count)
    return [job(str(n), output, arrival=int(time)) for n, time in enumerate(np.cumsum(gaps))]


def test_the_number_that_wait_is_known_at_every_instant() -> None:
    waits = Waits(np.array([0, 2, 5]), np.array([4, 3, 6]))
    assert [waits.number(time) for time in range(7)] == [1, 1, 2, 1, 0, 1, 0]
    assert waits.means(np.array([0.0, 2, 4, 6])) == pytest.approx([1, 1.5, 0.5])
    assert waits.clears(0, 4)
    assert not waits.clears(0, 3)
    assert waits.clears(4, 5)  # from 4 to 5 nobody waits


def test_one_that_begins_to_wait_as_another_stops_leaves_no_clear_instant() -> None:
    assert not Waits(np.array([0, 4]), np.array([4, 9])).clears(1, 8)


def test_the_statistic_is_that_of_newey_and_west() -> None:
    # Differences 1, 1, -1, 1, 1: mean 0.6; squares of what deviates 3.2, products of neighbours -0.96, weight 1/2.
    assert drift(np.array([0.0, 1, 2, 1, 2, 3])) == pytest.approx(3 / (3.2 - 2 * 0.5 * 0.96) ** 0.5)
    assert drift(np.array([0.0, 1, 2, 1, 2, 3])) > CRITICAL
    assert drift(np.zeros(16)) == 0
    assert drift(np.arange(16.0)) == np.inf
    assert drift(-np.arange(16.0)) == -np.inf


@pytest.mark.slow
def test_a_queue_that_requests_leave_unserved_fills_and_grows_no_more() -> None:
    # Half as much again as one slot bears: without a bound hundreds wait in the end. A bounded queue is full after a
    # sixth of the run; 4 or fewer of 16 runs for 5% false alarms (binomial, 99.9%).
    asked = [poisson(seed, 1.5, 600) for seed in range(SEEDS)]
    assert all(grows([run(requests, engine(slots=1), Unit(STEP))]) for requests in asked)
    short = [run(requests, engine(slots=1, queue_limit=20), Unit(STEP)) for requests in asked]
    assert sum(grows([log]) is True for log in short) <= 4
    patience = Patience(queue_timeout=20 * 20 * STEP)
    hurried = [[replace(request, patience=patience) for request in requests] for requests in asked]
    assert sum(grows([run(requests, engine(slots=1), Unit(STEP))]) is True for requests in hurried) <= 4


def test_waits_are_the_same_step_by_step() -> None:
    # Pages for few: requests are preempted and wait again.
    asked = [replace(request, prompt=40) for request in poisson(0, 3.5, 200)]
    logs = [run(asked, engine(slots=4, pages=8), Unit(STEP), macro=macro) for macro in (True, False)]
    assert len(logs[0].ran.runs) < len(logs[1].ran.runs)
    whole, steps = (left_waiting(RequestRecords(log)) for log in logs)
    assert len(whole.since) > 100
    assert np.array_equal(whole.since, steps.since)
    assert np.array_equal(whole.until, steps.until)
