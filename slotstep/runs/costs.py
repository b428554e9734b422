"""The step cost of a scenario, the profile that it comes from, and the pages that fit beside a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calibrate.hardware.devices import device as known_device
from calibrate.hardware.memory_plan import Beside, capacity, draft_model
from calibrate.models.architecture import from_mapping
from calibrate.profiles.forms import curve as form_of
from calibrate.profiles.profile import Profile
from sim.cost import forms
from sim.cost.drafted import Drafted
from slotstep.runs import profiles
from slotstep.scenario import units
from slotstep.scenario.cost import TERMS
from slotstep.scenario.fields import parts

if TYPE_CHECKING:
    from slotstep.scenario.cost import Cost
    from slotstep.scenario.schema import Scenario


DRAFT = "engine.speculation.draft.cost"


def cost(scenario: Scenario) -> forms.StepCost:
    """The step cost. Raises BadInput for one in which every step takes 0 ns, and as `curve`."""
    return taking_time(scenario, scenario.cost, "cost")


def taking_time(scenario: Scenario, given: Cost, key: str) -> forms.StepCost:
    """As `cost`, of the section that a scenario has under `key`."""
    made = curve(scenario, given, key)
    if isinstance(made, forms.Curve) and not made.takes_time:
        with scenario.blamed(f"{key}: "):
            raise ValueError("every step takes 0 ns; expected a coefficient above 0")
    return made


def curve(scenario: Scenario, given: Cost, key: str) -> forms.StepCost:
    """The step cost. Raises BadInput for invalid coefficients, and for a profile that cannot be used."""
    with scenario.blamed(f"{key}."):
        if given.unit is not None:
            return forms.Unit(given.unit)
        if given.affine is not None:
            return forms.Affine(**dict(given.affine))
        if given.roofline is not None:
            return forms.Roofline(**dict(given.roofline))
        if given.form is not None:
            name, coefficients = parts(given.form)
            return form_of(name, {key: coefficient(value) for key, value in coefficients.items()})
    chosen = profile_of(scenario, given, key)
    assert chosen is not None
    with scenario.blamed(f"{key}."):
        return chosen.cost(**{term: value for term in TERMS if (value := getattr(given, term)) is not None})


def with_drafts(scenario: Scenario, made: forms.StepCost) -> forms.StepCost:
    """A step cost and, of an engine that speculates, what drafting costs. Raises BadInput as `cost`."""
    given = scenario.engine.speculation
    if given is None:
        return made
    draft, model = given.draft, None
    if draft.cost is not None:
        model = taking_time(scenario, draft.cost, DRAFT)
    return Drafted(made, given.tokens, draft.lookup or 0, draft.share or 0.0, model)


def coefficient(value: Any) -> Any:
    """A coefficient of a named form: text is a duration, as nanoseconds; anything else stays as it is."""
    return units.coefficient(value) if isinstance(value, str) else value


def profile(scenario: Scenario) -> Profile | None:
    """The profile that the scenario names or that follows from the shapes it names; None for other kinds of cost.

    Raises BadInput for a profile that does not exist or is invalid, for a model that does not fit the device, and for
    content whose digest is not the one that the scenario states.
    """
    return profile_of(scenario, scenario.cost, "cost")


def profile_of(scenario: Scenario, given: Cost, key: str) -> Profile | None:
    """As `profile`, of the section that a scenario has under `key`."""
    if given.profile is not None:
        with scenario.blamed(f"{key}.profile: "):
            found = profiles.find(given.profile)
    elif given.shape is not None:
        with scenario.blamed(f"{key}.shape: "):
            found = profiles.of_shape(**given.shape.model_dump(exclude_none=True))
    else:
        return None
    if given.sha256 not in (None, found.sha256):
        with scenario.blamed(f"{key}.sha256: "):
            of = given.profile or found.name
            raise ValueError(f"found {given.sha256}; the content of {of} has {found.sha256}")
    return found


def device(given: Cost) -> tuple[str, float | None] | None:
    """The name of the device of a cost, and its memory in bytes where it is known; None for a cost of no device.

    Raises ValueError for a profile or a device that does not exist.
    """
    if given.shape is not None:
        sheet = known_device(given.shape.device)
        return sheet.name, sheet.memory
    if given.profile is None:
        return None
    content = profiles.find(given.profile).content
    return content["device"], content["memory"]


def pages_that_fit(scenario: Scenario, profile: Profile | None) -> int:
    """The number of pages that fit into the share `engine.fit` of device memory beside the model of the cost.

    Raises BadInput if model or memory are not known, and for a model that does not fit.
    """
    machine = scenario.engine
    assert machine.fit is not None
    with scenario.blamed("engine.fit: "):
        if profile is None or profile.content["memory"] is None:
            raise ValueError(
                "the memory of the device is not known; expected a cost with a shape, or a profile with it"
            )
        if "layers" not in profile.content["model"]:
            raise ValueError(
                f"the sizes of {profile.content['model']['name']} are not known; expected engine.pages instead"
            )
        content, details = profile.content, profile.content.get("details") or {}
        weights = details.get("weights")
        return capacity(
            from_mapping(content["model"]),
            content["memory"],
            dtype=content["dtype"] if weights is None else "bfloat16",
            kv_dtype=details.get("kv_dtype"),
            weights=weights,
            utilization=machine.fit,
            tensor_parallel=content["tensor_parallel"],
            page_size=machine.page_size,
            token_budget=machine.token_budget,
            slots=machine.slots,
            heads=machine.speculation.draft.layers if machine.speculation is not None else 0,
            beside=beside(scenario),
        ).pages


def beside(scenario: Scenario) -> Beside:
    """What a draft model takes of the memory. Raises BadInput if its sizes are not known."""
    given = scenario.engine.speculation
    if given is None or given.draft.cost is None:
        return Beside()
    found = profile_of(scenario, given.draft.cost, DRAFT)
    if found is None or "layers" not in found.content["model"]:
        with scenario.blamed("engine.fit: "):
            raise ValueError("the sizes of the draft model are not known; expected engine.pages instead")
    content, details = found.content, found.content.get("details") or {}
    return draft_model(
        from_mapping(content["model"]),
        dtype=content["dtype"] if details.get("weights") is None else "bfloat16",
        kv_dtype=details.get("kv_dtype"),
        weights=details.get("weights"),
        tensor_parallel=content["tensor_parallel"],
    )
