"""The slow end of a step cost's interval: the 95th percentile of either kind of step."""

from __future__ import annotations

import math

import numpy as np
import pytest

from calibrate.uncertainty.draws import draws
from calibrate.uncertainty.ends import shapes, slow_end
from calibrate.uncertainty.model import Uncertainty
from sim.cost.forms import Roofline
from sim.cost.scaled import Scaled

COST = Roofline(weight_pass=1e7, per_token=4e4, per_context_token=50.0)
REACH = 1.6449
"""The 95th percentile of the standard normal."""


def test_the_spreads_of_a_kind_add_up_as_squares() -> None:
    stated = Uncertainty(decode_median=0.9, prompts_median=1.2, common=0.3, decode=0.4, prompts=0.0)
    found = slow_end(COST, stated)
    assert math.log(found.decode / 0.9) == pytest.approx(0.5 * REACH, rel=1e-4)
    assert math.log(found.prompts / 1.2) == pytest.approx(0.3 * REACH, rel=1e-4)


def test_a_cost_that_is_certain_is_its_own_slow_end() -> None:
    assert slow_end(COST, Uncertainty()) == Scaled(COST)


def test_the_slow_end_is_that_of_draws_where_coefficients_vary() -> None:
    # One coefficient with a tenth of its size as deviation, beside a factor of 5%.
    stated = Uncertainty(common=0.05, terms=("weight_pass",), covariance=((1e12,),))
    found = slow_end(COST, stated)
    many = draws(COST, stated, 2000, 1)
    for place, shape in enumerate(shapes()):
        drawn = np.quantile([each.step(shape) for each in many], 0.95)
        factor = (found.decode, found.prompts)[place]
        assert factor * COST.step(shape) == pytest.approx(drawn, rel=0.03)
