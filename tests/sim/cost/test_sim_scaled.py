"""A scaled cost: the factor of its kind of step, to the nanosecond, in single steps and in runs."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import slotstep
from sim.cost.forms import Affine, Unit
from sim.cost.scaled import Scaled
from sim.cost.shape import Shape


def decodes(sequences: int, context: int) -> Shape:
    shape = Shape()
    shape.decodes, shape.context = sequences, context
    return shape


def test_steps_with_and_without_prompts_have_their_own_factor() -> None:
    cost = Scaled(Unit(1000), decode=1.5, prompts=0.25)
    assert cost.step(decodes(4, 100)) == 1500
    mixed = decodes(4, 100)
    mixed.add_chunk(0, 10)
    assert cost.step(mixed) == 250
    assert Scaled(Unit(1), decode=0.1).step(decodes(1, 1)) == 1


@given(st.floats(0.1, 10), st.floats(0, 1e7), st.floats(0, 1e3), st.integers(1, 100), st.integers(1, 300))
def test_a_run_is_its_steps(factor: float, base: float, slope: float, sequences: int, steps: int) -> None:
    cost = Scaled(Affine(base=base, per_context_token=slope), decode=factor)
    found = cost.run(decodes(sequences, 7), steps, [0] * steps)
    assert found.tolist() == [cost.step(decodes(sequences, 7 + sequences * step)) for step in range(steps)]


@pytest.mark.parametrize("factor", [0.0, -1.0, math.inf, math.nan])
def test_a_factor_that_is_none_is_refused(factor: float) -> None:
    with pytest.raises(ValueError, match=r"prompts is .*; expected a factor above 0"):
        Scaled(Unit(1), prompts=factor)


def test_a_step_that_gets_too_long_is_refused() -> None:
    with pytest.raises(OverflowError, match="292 years"):
        Scaled(Unit(2**62), decode=3).run(decodes(1, 1), 2, [0, 0])


def test_the_longest_decode_still_counts() -> None:
    assert Scaled(Affine(base=1, raggedness=0.5)).needs_longest
    assert not Scaled(Unit(1)).needs_longest
    requests = [{"prompt": 10, "output": 5}, {"prompt": 100, "output": 5}]
    scenario = slotstep.parse({"workload": {"requests": requests}, "engine": {"slots": 2}, "cost": {"unit": "1ms"}})
    cost = Affine(base=1e6, per_context_token=1e4, raggedness=0.5)
    plain, scaled = (slotstep.run(scenario, price=price).log.step_durations() for price in (cost, Scaled(cost)))
    assert plain.tolist() == scaled.tolist()
