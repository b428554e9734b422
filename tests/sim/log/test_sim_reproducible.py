"""Same inputs, the same log to the byte: in another process, with another hash seed, and a log is what it says."""

import os
import subprocess
import sys

from repository import ROOT
from sim_stories import engine, job, jobs, run

from policies.registry import build
from sim.cost.forms import Unit
from sim.service.cluster import simulate

MANY_RUNS = """
from random import Random
from sim_stories import engine, run, static_engine
from policies.registry import build
from sim.cost.forms import Affine, Roofline
from sim.policy.base import Reserve
from sim.request import Request

cost = Roofline(weight_pass=1e4, per_token=50.5, per_context_token=0.37, per_sequence=9.9, host=801.5)
for policy, options in (("fcfs", {}), ("sjf", {"error": 0.7}), ("fair", {"max_wait": 10**6, "order": "sjf"})):
    rng = Random(policy)
    now, requests = 0, []
    for place in range(300):
        now += int(rng.expovariate(1 / 5e4))
        lengths = rng.randint(1, 300), rng.randint(1, 200)
        requests.append(Request(f"r{place}", now, *lengths, tenant=rng.choice(["x", "y", "z"])))
    for scheduler in (
        engine(16, 128, 120, 16, build(policy, options, 3)),
        engine(16, 512, 900, 16, build(policy, options, 3), evict="after", chunked=False),
        engine(16, 512, 900, 16, build(policy, options, 3), Reserve()),
        static_engine(16, 900, 16, build(policy, options, 3)),
    ):
        print(run(requests, scheduler, cost).sha256())
"""


def digests(hash_seed):
    done = subprocess.run(
        [sys.executable, "-c", MANY_RUNS],
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONHASHSEED": hash_seed,
            "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "tests" / "support"))),
        },
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.split()


def test_two_processes_write_the_same_logs():
    first, second = digests("0"), digests("4242")
    assert len(first) == len(set(first)) == 12
    assert first == second


def test_the_digest_tells_runs_apart():
    """It covers who came, what happened when, and how long each step lasted."""
    variants = [
        run(jobs(a=2, b=4, c=1), engine(slots=2)),
        run(jobs(a=2, b=4, d=1), engine(slots=2)),
        run(jobs(a=2, b=4, c=2), engine(slots=2)),
        run(jobs(a=2, b=4, c=1), engine(slots=2), Unit(2)),
        run(jobs(a=2, b=4, c=1), engine(slots=3)),
        run(jobs(a=2, b=4, c=1), engine(slots=2, evict="after")),
        run([job("a", 2), job("b", 4), job("c", 1, tenant="x")], engine(slots=2)),
        run([job("a", 2), job("b", 4), job("c", 1, arrival=1)], engine(slots=2)),
        run([], engine(slots=2)),
    ]
    assert len({log.sha256() for log in variants}) == len(variants)


def test_the_digest_knows_nothing_of_the_settings():
    # The same happened with more pages, another budget, other orders: the same log.
    logs = [
        run(jobs(a=2, b=4, c=1), engine(slots=2)),
        run(jobs(a=2, b=4, c=1), engine(slots=2, pages=50, budget=7)),
        run(jobs(a=2, b=4, c=1), engine(slots=2, order=build("fair", {"order": "fcfs"}, 0))),
        run(jobs(a=2, b=4, c=1), engine(slots=2), macro=False),
    ]
    assert len({log.sha256() for log in logs}) == 1


def test_progress_is_told_and_changes_nothing():
    requests = [job(str(place), 1 + place % 7, arrival=place) for place in range(1500)]
    told = []
    log = simulate(requests, engine(slots=2), Unit(1), progress=told.append)
    assert log.sha256() == run(requests, engine(slots=2)).sha256()
    assert len(told) > 1
    assert told == sorted(told)
    assert told[-1] == 1500
