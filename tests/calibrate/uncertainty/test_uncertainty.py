"""Draws of a step cost: seeded, above 0, with the spread and the covariance that are stated."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrate.fit.from_steps import fit
from calibrate.fit.step_log import predicted
from calibrate.profiles.profile import Profile, profile
from calibrate.uncertainty import error_model
from calibrate.uncertainty.draws import draws
from calibrate.uncertainty.model import Uncertainty, from_mapping
from sim.cost.forms import Roofline
from sim.cost.shape import Shape

COST = Roofline(host=1e6, weight_pass=1e7, per_token=4e4, per_context_token=50.0)


ABOUT: dict[str, Any] = {
    "device": "H100",
    "model": {"name": "small"},
    "dtype": "bfloat16",
    "tensor_parallel": 1,
    "date": "2026-01-01",
    "method": "by hand",
    "source": "nothing",
    "not_included": [],
}


def made(**more: Any) -> Profile:
    return profile({"roofline": {"weight_pass": 1e7, "host": 1e6}}, **ABOUT, **more)


def steps(seed: int) -> pd.DataFrame:
    """400 steps of all kinds in 40 visits of ten; the steps of a visit are wrong by the same 1%."""
    random = np.random.default_rng(seed)
    chunks = random.integers(0, 2, 400)
    tokens = chunks * random.integers(1, 2000, 400)
    frame = pd.DataFrame(
        {
            "decodes": random.integers(1, 200, 400),
            "context": random.integers(1000, 200_000, 400),
            "chunks": chunks,
            "chunk_tokens": tokens,
            "chunk_work": tokens**2 / 2,
        }
    )
    wrong = np.exp(np.repeat(random.normal(0, 0.01, 40), 10))
    frame["duration_ns"] = (predicted(COST, frame) * wrong).round().astype(np.int64)
    return frame


def test_factors_have_the_stated_median_and_spread() -> None:
    stated = Uncertainty(1.2, 0.9, common=0.1, decode=0.05, prompts=0.2)
    found = draws(COST, stated, 400, seed=1)
    decode, prompts = (np.log([getattr(each, name) for each in found]) for name in ("decode", "prompts"))
    assert np.median(decode) == pytest.approx(math.log(1.2), abs=0.02)
    assert np.median(prompts) == pytest.approx(math.log(0.9), abs=0.04)
    assert decode.std() == pytest.approx(math.hypot(0.1, 0.05), rel=0.1)
    assert prompts.std() == pytest.approx(math.hypot(0.1, 0.2), rel=0.1)
    # What both have in common: the covariance is the square of `common`.
    assert np.cov(decode, prompts)[0, 1] == pytest.approx(0.01, abs=0.004)


def test_draws_depend_on_the_seed_alone() -> None:
    stated = Uncertainty(common=0.1, terms=("host",), covariance=((1e10,),))
    assert draws(COST, stated, 20, 3) == draws(COST, stated, 20, 3)
    assert draws(COST, stated, 20, 3) != draws(COST, stated, 20, 4)


def test_each_slice_of_probability_is_drawn_once() -> None:
    found = np.log([each.decode for each in draws(COST, Uncertainty(common=1.0), 10, 0)])
    # Deciles of the standard normal.
    edges = [-1.2816, -0.8416, -0.5244, -0.2533, 0, 0.2533, 0.5244, 0.8416, 1.2816]
    assert sorted(np.searchsorted(edges, found).tolist()) == list(range(10))


def test_coefficients_that_are_known_only_as_a_sum_keep_it() -> None:
    # host and weight_pass may each be off by 3 ms, but their sum only by 3 us: as of steps with one number of tokens.
    big, small = 9e12, 9e6
    rows = ((big, small - big), (small - big, big))
    found = draws(COST, Uncertainty(terms=("host", "weight_pass"), covariance=rows), 200, 0)
    curves = [each.cost for each in found if isinstance(each.cost, Roofline)]
    hosts = np.array([each.host for each in curves])
    sums = hosts + [each.weight_pass for each in curves]
    assert len(curves) == 200
    assert hosts.min() >= 0
    assert (hosts == 0).mean() == pytest.approx(0.37, abs=0.05)  # the share of N(1, 3) below 0
    assert np.abs(sums - 11e6).max() < 1e5


@given(
    st.integers(0, 10**6),
    st.lists(st.floats(0, 1e7), min_size=4, max_size=4),
    st.lists(st.floats(-1e7, 1e7), min_size=16, max_size=16),
)
def test_draws_are_physical_whatever_the_covariance(seed: int, values: list[float], roots: list[float]) -> None:
    names = ("host", "weight_pass", "per_token", "per_sequence")
    cost = Roofline(**dict(zip(names, values, strict=True)))
    root = np.array(roots).reshape(4, 4)
    rows = tuple(map(tuple, (root @ root.T).tolist()))
    shape = Shape()
    shape.decodes, shape.context = 3, 100
    for each in draws(cost, Uncertainty(common=0.3, terms=names, covariance=rows), 12, seed):
        assert each.decode > 0
        assert all(getattr(each.cost, name) >= 0 for name in names)
        assert each.step(shape) >= 1


def test_the_covariance_of_a_fit_holds_the_hidden_cost() -> None:
    """Steps of one visit have one error: taken as independent, they would make the interval a third as wide."""
    held = []
    for seed in range(20):
        log = steps(seed)
        found = fit(log, hold_out=0, draws=60)
        error = predicted(COST, log).mean() / predicted(found.cost, log).mean() - 1
        stated = error_model.of_fit({name: getattr(found.cost, name) for name in found.intervals}, found.covariance)
        alone = Uncertainty(terms=stated.terms, covariance=stated.covariance)
        means = [predicted(each.cost, log).mean() for each in draws(found.cost, alone, 40, 0)]  # type: ignore[arg-type]
        low, high = np.quantile(means, (0.05, 0.95), method="hazen") / predicted(found.cost, log).mean() - 1
        held.append(low <= error <= high)
    # Binomial(20, 0.9) is below 15 in 1% of cases.
    assert sum(held) >= 15


def test_a_profile_carries_its_uncertainty() -> None:
    stated = Uncertainty(1.1, 1.0, 0.1, 0.2, 0.3, ("host",), ((4.0,),), "a story")
    of = made(uncertainty=stated.content())
    assert error_model.of(of.content) == stated
    assert from_mapping(stated.content()) == stated
    assert of.sha256 != made().sha256
    assert "uncertainty" not in made().content


@pytest.mark.parametrize(
    ("stated", "says"),
    [
        ({"common": 0.1}, "uncertainty.source: missing; expected text"),
        ({"source": "x", "comon": 0.1}, "uncertainty.comon: unknown key; did you mean uncertainty.common?"),
        ({"source": "x", "common": 3}, "uncertainty.common is 3; expected a standard deviation from 0 to 2"),
        ({"source": "x", "decode_median": 0}, "uncertainty.decode_median is 0; expected a factor from 0.1 to 10"),
        ({"source": "x", "terms": "host"}, "uncertainty.terms is 'host'; expected a list of names"),
        ({"source": "x", "terms": ["host"]}, "uncertainty.covariance has rows of []"),
        (
            {"source": "x", "terms": ["base"], "covariance": [[1]]},
            "uncertainty.terms: found base; expected coefficients",
        ),
        ({"source": "x", "terms": ["host"], "covariance": [[-1]]}, "uncertainty.covariance is not symmetric"),
        ({"source": "x", "terms": ["host"], "covariance": 1}, "uncertainty.covariance is no list of rows"),
        ({"source": "x", "terms": ["host"], "covariance": [["a"]]}, "uncertainty.covariance has values that are no"),
    ],
)
def test_an_uncertainty_that_is_none_is_refused(stated: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match="uncertainty") as refused:
        made(uncertainty=stated)
    assert says in str(refused.value)


def test_a_profile_that_states_none_has_that_of_costs_made_like_it() -> None:
    of_shapes = made(details={"efficiency": {"weights": 0.8}})
    of_database = made(details={"sampler": 1})
    table = {"dense": {"at": [1], "ns": [1e6]}, "decode": {"at": [1], "ns": [0], "per_position": [1]}}
    of_table = profile({"table": {**table, "chunk": table["decode"]}}, **ABOUT)
    assert [error_model.made(each.content) for each in (of_shapes, of_database, of_table, made())] == [
        "shapes",
        "database",
        "tables",
        "fit",
    ]
    assert error_model.of(made().content) == error_model.sizes()["fit"]
    assert set(error_model.sizes()) == set(error_model.MADE)


def test_prompts_that_were_made_longer_have_less_of_the_median_left() -> None:
    database = error_model.sizes()["database"]
    found = error_model.of(made(details={"sampler": 1, "prompt_factor": 1.1}).content)
    assert found.prompts_median == pytest.approx(database.prompts_median / 1.1)
    assert found.decode_median == database.decode_median
