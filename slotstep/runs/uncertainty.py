"""The uncertainty of a scenario's step cost, and draws of the cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibrate.uncertainty import error_model
from calibrate.uncertainty.draws import draws
from calibrate.uncertainty.ends import slow_end
from sim.cost.forms import Curve
from slotstep.runs import build, costs

if TYPE_CHECKING:
    from calibrate.uncertainty.model import Uncertainty
    from sim.cost.scaled import Scaled
    from slotstep.scenario.schema import Scenario


def of(scenario: Scenario) -> Uncertainty:
    """The uncertainty of the profile or shape of a scenario's cost.

    Raises BadInput for a cost of coefficients, which states none, and for replicas with costs of their own.
    """
    replicas = [each for pool in scenario.cluster.pools for each in build.replicas(scenario, pool)]
    if any(each.cost is not scenario.cost for each in replicas):
        with scenario.blamed("cluster: "):
            raise ValueError("some of its replicas have a cost of their own; --uncertainty draws one for all")
    profile = costs.profile(scenario)
    if profile is None:
        with scenario.blamed("cost: "):
            raise ValueError("coefficients do not say how wrong they may be; expected a profile or a shape")
    return error_model.of(profile.content)


def drawn(scenario: Scenario, count: int) -> list[Scaled]:
    """`count` draws of a scenario's cost, from its seed. Raises BadInput as `of`."""
    uncertainty, cost = of(scenario), costs.cost(scenario)
    assert isinstance(cost, Curve)
    return draws(cost, uncertainty, count, scenario.seed)


def slow(scenario: Scenario) -> Scaled:
    """A scenario's cost at the slow end of its interval. Raises BadInput as `of`."""
    uncertainty, cost = of(scenario), costs.cost(scenario)
    assert isinstance(cost, Curve)
    return slow_end(cost, uncertainty)
