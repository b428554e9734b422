"""The slow end of a step cost's interval: factors that steps of such costs exceed in one case of twenty.

Each of the two kinds of steps is at its own end at the same time. Where an answer hangs on both kinds that is slower
than its own 5% quantile: a bound on the safe side. `draws` gives the quantile itself, for the price of many runs.
"""

from __future__ import annotations

from dataclasses import replace
from math import exp, hypot, log

import numpy as np
from scipy.stats import norm

from calibrate.uncertainty.draws import draws
from calibrate.uncertainty.model import Uncertainty
from sim.cost.forms import Curve
from sim.cost.scaled import Scaled
from sim.cost.shape import Shape

SURE = 0.95
DRAWS = 100
"""Draws of fitted coefficients, for the spread of a step."""
DECODES, CONTEXT, CHUNK = 32, 1000, 1000
"""The steps for which that spread is taken: decodes, each with so much context; and the same beside a chunk."""


def slow_end(cost: Curve, uncertainty: Uncertainty, sure: float = SURE) -> Scaled:
    """The cost whose steps, of either kind, last as long as the share `sure` of such costs at most."""
    reach = float(norm.ppf(sure))
    decode, prompts = coefficients(cost, uncertainty)
    alone = hypot(uncertainty.common, uncertainty.decode, decode)
    beside = hypot(uncertainty.common, uncertainty.prompts, prompts)
    return Scaled(
        cost, uncertainty.decode_median * exp(reach * alone), uncertainty.prompts_median * exp(reach * beside)
    )


def coefficients(cost: Curve, uncertainty: Uncertainty) -> tuple[float, float]:
    """Standard deviations of the logarithms of a step of decodes and one with a prompt, by the fit's covariance."""
    if not uncertainty.terms:
        return 0.0, 0.0
    alone = replace(uncertainty, common=0.0, decode=0.0, prompts=0.0, decode_median=1.0, prompts_median=1.0)
    drawn = draws(cost, alone, DRAWS, 0)
    decode, prompts = (float(np.std([log(each.step(shape)) for each in drawn])) for shape in shapes())
    return decode, prompts


def shapes() -> tuple[Shape, Shape]:
    """A step of decodes, and the same beside a chunk."""
    made = Shape(), Shape()
    for shape in made:
        for _ in range(DECODES):
            shape.add_decode(CONTEXT)
    made[1].add_chunk(0, CHUNK)
    return made
