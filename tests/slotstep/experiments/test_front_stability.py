"""Which runs are said to be unstable: shares over seeds, in one pool and in two, and what `capacity` makes of it.

Bounds of counts are binomial: beyond them in one of a hundred repetitions, if the share were the one that is
promised. `python -m benchmarks.stability` is the same over 200 seeds and longer runs.
"""

from __future__ import annotations

import pytest
from scipy.stats import binom

import slotstep
from benchmarks.stability import LIMIT, scenario, share
from slotstep.experiments.capacity.answer import find
from slotstep.experiments.capacity.question import Question


@pytest.mark.slow
@pytest.mark.parametrize("pools", [1, 2])
def test_at_most_one_in_twenty_stable_runs_is_said_to_grow(pools: int) -> None:
    grown, _, _ = share(pools, 300, 0.9, seeds=40)
    assert grown <= binom.ppf(0.99, 40, 0.05)


@pytest.mark.slow
def test_growth_is_found_in_nineteen_of_twenty_runs_at_one_twentieth_too_much() -> None:
    grown, _, _ = share(1, 3000, 1.05, seeds=12)
    assert grown >= binom.ppf(0.01, 12, 0.95)


def test_time_in_an_earlier_pool_is_no_wait_at_the_client() -> None:
    # Prompts take a second on average, on sixteen replicas: at 7.6 a second some are always on their way.
    settings = scenario(2, 300, 0.5)
    settings["workload"]["synthetic"]["prompt"] = {"lognormal": {"mean": 2048, "cv": 1}}
    settings["cluster"]["prefill"] = {"replicas": [{"count": 16, "engine": {"slots": 1}}], "router": "least_requests"}
    assert [slotstep.run(slotstep.parse({**settings, "seed": seed})).queue_grows for seed in range(8)] == [False] * 8


def test_an_overloaded_pool_is_found_behind_and_before_one_that_is_not() -> None:
    before = scenario(2, 600, 1.2)
    assert slotstep.run(slotstep.parse(before)).queue_grows is True
    before["cluster"]["decode"] = {"replicas": 2, "router": "least_requests"}
    assert slotstep.run(slotstep.parse(before)).queue_grows is True
    behind = scenario(2, 600, 1.2)
    behind["cluster"]["prefill"] = {"replicas": [{"count": 2, "engine": {"slots": 1}}], "router": "least_requests"}
    assert slotstep.run(slotstep.parse(behind)).queue_grows is True


@pytest.mark.slow
@pytest.mark.parametrize("pools", [1, 2])
def test_capacity_finds_the_limit_of_one_pool_and_of_two(pools: int) -> None:
    # The runs are short: how far a queue of so few requests grows by luck widens the bracket.
    question = Question(slotstep.parse(scenario(pools, 400, 0.7)), seeds=4, tolerance=0.05, jobs=1)
    (answer,), _ = find(question)
    assert answer.knee is not None
    assert answer.knee.at == pytest.approx(LIMIT, rel=0.15)
    low = answer.curve[0]
    assert low.at < 0.6 * LIMIT
    assert low.stable is True
