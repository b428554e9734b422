"""The cost of a scenario as the kernel takes it, the profile it comes from, and the pages that fit beside a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibrate.hardware.memory_plan import capacity
from calibrate.models.architecture import from_mapping
from calibrate.profiles.profile import Profile
from sim.cost import forms
from slotstep.runs import profiles
from slotstep.scenario.cost import TERMS

if TYPE_CHECKING:
    from slotstep.scenario.schema import Scenario


def cost(scenario: Scenario) -> forms.StepCost:
    """What a step costs; raises BadInput for one that takes no time, and as `curve`."""
    made = curve(scenario)
    if isinstance(made, forms.Curve) and not made.takes_time:
        with scenario.blamed("cost: "):
            raise ValueError("every step takes 0 ns; expected a coefficient above 0")
    return made


def curve(scenario: Scenario) -> forms.StepCost:
    """The scenario's cost; raises BadInput for what is not one, and for a profile that cannot be used."""
    given = scenario.cost
    with scenario.blamed("cost."):
        if given.unit is not None:
            return forms.Unit(given.unit)
        if given.affine is not None:
            return forms.Affine(**dict(given.affine))
        if given.roofline is not None:
            return forms.Roofline(**dict(given.roofline))
    chosen = profile(scenario)
    assert chosen is not None
    with scenario.blamed("cost."):
        return chosen.cost(**{key: value for key in TERMS if (value := getattr(given, key)) is not None})


def profile(scenario: Scenario) -> Profile | None:
    """The profile that the scenario names, or that follows from the shapes it names, if it does either.

    Raises BadInput if there is none, if it is not one, if the model does not fit the device, or if the content is
    another than the scenario says.
    """
    given = scenario.cost
    if given.profile is not None:
        with scenario.blamed("cost.profile: "):
            found = profiles.find(given.profile)
    elif given.shape is not None:
        with scenario.blamed("cost.shape: "):
            found = profiles.of_shape(**given.shape.model_dump(exclude_none=True))
    else:
        return None
    if given.sha256 not in (None, found.sha256):
        with scenario.blamed("cost.sha256: "):
            of = given.profile or found.name
            raise ValueError(f"found {given.sha256}; the content of {of} has {found.sha256}")
    return found


def pages_that_fit(scenario: Scenario, profile: Profile | None) -> int:
    """The pages that `engine.fit` of the device's memory leave beside the model of the cost.

    Raises BadInput where the cost does not say model and memory, and for a model that does not fit.
    """
    machine = scenario.engine
    assert machine.fit is not None
    with scenario.blamed("engine.fit: "):
        if profile is None or profile.content["memory"] is None:
            raise ValueError(
                "the memory of the device is not known; expected a cost with a shape, or a profile with it"
            )
        content = profile.content
        return capacity(
            from_mapping(content["model"]),
            content["memory"],
            dtype=content["dtype"],
            kv_dtype=(content.get("details") or {}).get("kv_dtype"),
            utilization=machine.fit,
            tensor_parallel=content["tensor_parallel"],
            page_size=machine.page_size,
            token_budget=machine.token_budget,
            slots=machine.slots,
        ).pages
