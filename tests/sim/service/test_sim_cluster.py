"""Several replicas behind a router: one virtual time, a log for each, one account of them all."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sim_stories import engine, job, run, times

from policies import routers
from sim.accounting.frames import of_each, requests_frame, slots_frame
from sim.accounting.metrics import summary
from sim.cost.forms import Affine, Unit
from sim.request import Request
from sim.service.clients import Window
from sim.service.cluster import simulate_cluster

pytestmark = [pytest.mark.simulation, pytest.mark.no_cover]  # many runs of what other tests cover line by line

STEP = Affine(base=8e6, per_sequence=1e5, per_prefill_token=1e4)


def fleet(requests, router, replicas=2, cost=Unit(10), macro=True, **settings):  # noqa: B008
    """The logs of equal replicas behind a router."""
    options = {"slots": 1, **settings}
    return simulate_cluster(requests, [(engine(**options), cost) for _ in range(replicas)], router, macro)


def poisson(rate, count, seed, output=40):
    """Requests at so many per second, of 100 prompt tokens and geometric outputs."""
    draws = np.random.default_rng(seed)
    arrivals = np.cumsum(draws.exponential(1e9 / rate, count)).astype(int)
    outputs = draws.geometric(1 / output, count)
    return [
        Request(f"{seed}-{number}", int(arrival), 100, int(tokens))
        for number, (arrival, tokens) in enumerate(zip(arrivals, outputs, strict=True))
    ]


def went(logs):
    """Which requests each replica got."""
    return [[request.id for request in log.requests] for log in logs]


def test_one_replica_behind_any_router_is_the_single_engine():
    requests = poisson(50, 200, seed=1)
    alone = run(requests, engine(slots=4), STEP).sha256()
    for name in ("round_robin", "random", "least_requests", "least_tokens", "power_of_two", "sticky", "prefix"):
        (log,) = fleet(requests, routers.build(name, {}, 0, 1), replicas=1, cost=STEP, slots=4)
        assert log.sha256() == alone


def test_replicas_work_side_by_side():
    logs = fleet([job("a", 3), job("b", 2), job("c", 2)], routers.RoundRobin())
    assert went(logs) == [["a", "c"], ["b"]]
    assert [times(log, "finished") for log in logs] == [{"a": 30, "c": 50}, {"b": 20}]


def test_their_accounts_add_up_over_one_makespan():
    # Two engines with a slot each for 50 ns: 7 steps of 10, and the second rests from 20 on.
    logs = fleet([job("a", 3), job("b", 2), job("c", 2)], routers.RoundRobin())
    found = summary(logs)
    assert found["requests"]["finished"] == 3
    assert found["slot_steps"]["bought"] == 7
    assert found["slot_steps"]["decode"] + found["slot_steps"]["prefill"] == 7
    seconds = found["slot_seconds"]
    assert seconds["bought"] == pytest.approx(100e-9)
    assert seconds["idle"] == pytest.approx(30e-9)
    assert sum(time for row, time in seconds.items() if row != "bought") == pytest.approx(seconds["bought"])
    assert [replica["output_tokens"] for replica in found["replicas"]] == [5, 2]
    assert [replica["busy"] for replica in found["replicas"]] == [1.0, 0.4]
    assert found["itl_s"]["n"] == 2 + 1 + 1
    assert found["tokens"]["output"] == 7


def test_the_peak_of_pages_is_that_of_one_instant():
    # Each request holds one page: a from 0 to 20 on the first replica, b from 30 to 50 on the second, never together.
    apart = fleet([job("a", 2), job("b", 2, arrival=30)], routers.RoundRobin())
    assert summary(apart)["pages"]["peak_used"] == 1
    together = fleet([job("a", 2), job("b", 2, arrival=10)], routers.RoundRobin())
    assert summary(together)["pages"]["peak_used"] == 2


def test_frames_name_the_replica():
    logs = fleet([job("a", 3), job("b", 2), job("c", 2)], routers.RoundRobin())
    frame = of_each(requests_frame, logs)
    assert dict(zip(frame.id, frame.replica, strict=True)) == {"a": 0, "c": 0, "b": 1}
    assert of_each(slots_frame, logs).replica.tolist() == [0, 0, 1]
    assert "replica" not in of_each(requests_frame, logs[:1])


def test_macro_steps_change_nothing_with_several_replicas():
    requests = poisson(120, 300, seed=3)
    for name in ("round_robin", "random", "least_requests", "least_tokens", "power_of_two"):
        digests = [
            summary(fleet(requests, routers.build(name, {}, 7, 3), 3, STEP, macro, slots=4, pages=60))["log_sha256"]
            for macro in (True, False)
        ]
        assert digests[0] == digests[1]


def test_replicas_do_not_cut_each_others_runs():
    # Eight replicas at eight times the load make as many steps per run of steps as one does, give or take a fifth.
    def steps_per_run(replicas):
        requests = poisson(5 * replicas, 150 * replicas, seed=5, output=300)
        logs = fleet(requests, routers.Uniform(1), replicas, STEP, slots=64)
        return sum(log.steps for log in logs) / sum(len(log.run_table()["steps"]) for log in logs)

    assert steps_per_run(8) == pytest.approx(steps_per_run(1), rel=0.2)


@pytest.mark.slow
def test_two_replicas_by_lot_at_twice_the_load_wait_like_one_and_state_helps():
    seeds = range(16)

    def mean_waits(replicas, make_router):
        return np.array([
            summary(fleet(poisson(6 * replicas, 600 * replicas, seed), make_router(seed), replicas, STEP, slots=2))
            ["e2e_s"]["mean"] for seed in seeds
        ])  # fmt: skip

    one = mean_waits(1, lambda _: routers.RoundRobin())
    by_lot = mean_waits(2, routers.Uniform)
    assert stats.ttest_ind(one, by_lot, equal_var=False).pvalue > 0.001
    for router in (lambda _: routers.LeastRequests(), lambda _: routers.LeastTokens(), routers.PowerOfTwo):
        assert mean_waits(2, router).mean() < by_lot.mean()


def test_a_window_counts_requests_on_all_replicas():
    logs = fleet(Window([job(name, 2) for name in "abcd"], size=2), routers.LeastRequests())
    assert went(logs) == [["a", "c"], ["b", "d"]]
    assert [times(log, "queued") for log in logs] == [{"a": 0, "c": 20}, {"b": 0, "d": 20}]
