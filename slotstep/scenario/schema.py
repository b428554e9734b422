"""A scenario: what is asked of which engine, at what cost, under which policy; from a file or a mapping.

Runs nothing itself; `slotstep.runs.build` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import PrivateAttr, ValidationError, model_validator

from slotstep.runs import build as engine
from slotstep.runs.workload import AUTO
from slotstep.scenario import cluster as fleet
from slotstep.scenario import document, presets, size_limits
from slotstep.scenario.clients import Crowd, Limits
from slotstep.scenario.cluster import Cluster
from slotstep.scenario.engine import Engine
from slotstep.scenario.fields import Label, Section, Seed, Truth
from slotstep.scenario.sections import SOURCES, TRACE_OPTIONS, Cost, Measure, Objectives, PolicyChoice, Workload
from slotstep.scenario.validation_errors import complaint
from traces.errors import BadInput

if TYPE_CHECKING:
    from slotstep.runs.result import Result


class Scenario(Section):
    """One scenario, checked: `load` reads one from a file, `parse` from a mapping."""

    name: Label
    workload: Workload
    clients: Crowd | None = None
    limits: Limits = Limits()
    cluster: Cluster = Cluster()
    engine: Engine = Engine()
    cost: Cost
    policy: PolicyChoice = PolicyChoice.model_validate("fcfs")
    objectives: Objectives = Objectives()
    measure: Measure | None = None
    seed: Seed = 0
    allow_large: Truth = False

    _source: str = PrivateAttr("scenario")
    _written: Scenario | None = PrivateAttr(None)

    @model_validator(mode="before")
    @classmethod
    def one_policy(cls, value: object) -> object:
        """A policy among a preset's options is the scenario's; groups of replicas have whole engines."""
        return fleet.spread(presets.move_policy(value)) if isinstance(value, dict) else value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and self.resolved() == other.resolved()

    def resolved(self) -> dict[str, Any]:
        """This scenario as a mapping of plain values, every default explicit, that `parse` reads back."""
        plain = self.model_dump(mode="json", exclude_none=True, by_alias=True)
        return plain | {"policy": engine.resolved_policy(self)}

    def unpinned(self) -> dict[str, Any]:
        """`resolved`, but what follows from profiles is still to be found: another cost or engine may be put in."""
        written = self if self._written is None else self._written
        settings = written.resolved() | {"policy": engine.resolved_policy(self)}
        for section in (settings, *fleet.group_sections(settings)):
            if "fit" in section["engine"]:
                del section["engine"]["pages"]
        return settings

    def pinned(self) -> Scenario:
        """This scenario with what follows from its profiles said as well: their content, and the pages that fit.

        Raises BadInput for a profile that cannot be used, and for a model that does not fit.
        """
        cost, machine = self.settled(self.cost, self.engine)
        return self.model_copy(
            update={"cost": cost, "engine": machine, "cluster": fleet.changed(self.cluster, self.with_content)}
        )

    def settled(self, cost: Cost, machine: Engine) -> tuple[Cost, Engine]:
        """A cost with the content of its profile, and an engine with as many pages as fit, if it asks for that."""
        own = self.model_copy(update={"cost": cost, "engine": machine})
        profile = engine.profile(own)
        if machine.fit is not None:
            machine = machine.model_copy(update={"pages": engine.pages_that_fit(own, profile), "fit": None})
        return (cost if profile is None else cost.model_copy(update={"sha256": profile.sha256})), machine

    def with_content(self, group: fleet.Group) -> fleet.Group:
        """A group of replicas with the same said of its own cost and engine."""
        cost, machine = self.settled(group.cost or self.cost, group.engine)
        return group.model_copy(update={"cost": cost if group.cost else None, "engine": machine})

    @property
    def predictor(self) -> str | None:
        """The name of the predictor of output lengths that the policy uses, None if it uses none."""
        return engine.predictor(self)

    @property
    def holds_back(self) -> bool:
        """Whether a request may be sent later than its client wanted: by a window, or on a long way."""
        return self.clients is not None and bool(self.clients.window or self.clients.delay)

    def with_policy(self, name: str) -> Scenario:
        """This scenario under the policy `name`: its own options if it has that policy, else the defaults.

        Raises BadInput for a name that no policy has, and for a policy that does not fit the engine.
        """
        if name == self.policy.name:
            return self
        other = self.model_copy(update={"policy": PolicyChoice.model_construct(name=name, options={})})
        engine.check_replicas(other)
        return other

    def run(self, policy: str | None = None, allow_large: bool = False) -> Result:
        """Simulate this scenario, under the policy named `policy` if one is given.

        Raises BadInput for a policy that does not exist or requests that cannot be read, for a run that makes no
        progress and, unless `allow_large`, one above the limits of size (`slotstep.scenario.size_limits`).
        """
        chosen = self if policy is None else self.with_policy(policy)
        return engine.run(chosen.model_copy(update={"allow_large": True}) if allow_large else chosen)

    @contextmanager
    def blamed(self, key: str) -> Iterator[None]:
        """Say of a ValueError raised inside where in this scenario it comes from: as a BadInput.

        `key` is what its words lack in front, such as "policy: ".
        """
        try:
            yield
        except ValueError as error:
            raise BadInput(f"{self._source}: {key}{error}") from error


def load(
    path: str | Path, overrides: Iterable[str] = (), trace: str | Path | None = None, allow_large: bool = False
) -> Scenario:
    """The scenario in the YAML file `path`, with KEY=VALUE `overrides` applied and its requests from `trace`.

    `trace` takes the place of the workload's source and keeps what is done to the requests; it is read as
    the kind of trace that the scenario names, or found out if its workload is no trace. File names in the
    scenario and its overrides are relative to its folder, `trace` to the present one. `allow_large` as in `parse`.

    Raises BadInput, one line with file and key, for a file that cannot be read and for what is wrong in it.
    """
    path = Path(path)
    mapping = document.read(path)
    document.override(mapping, overrides)
    if trace is not None:
        read_from(Path(trace), mapping)
    return parse(mapping, str(path), path.parent, path.stem, allow_large)


def parse(
    mapping: Mapping[str, Any],
    source: str = "scenario",
    folder: Path | None = None,
    name: str = "scenario",
    allow_large: bool = False,
) -> Scenario:
    """A checked scenario from a mapping of plain values; `source` begins its error messages.

    `folder` is where relative file names start (default: the present one), `name` is used if it has none.
    `allow_large` lifts the limits of `slotstep.scenario.size_limits`, as the key of that name does.
    Raises BadInput, one line with `source` and key.
    """
    given = {"name": name, **mapping, **({"allow_large": True} if allow_large else {})}
    try:
        scenario = Scenario.model_validate(given, context={"folder": folder or Path()})
    except ValidationError as error:
        raise BadInput(f"{source}: {complaint(error, Scenario, spelling(mapping))}") from None
    scenario._source = source
    size_limits.check(scenario)
    pinned = scenario.pinned()
    pinned._written = scenario
    engine.check(pinned)
    return pinned


def spelling(mapping: Mapping[str, Any]) -> dict[str, str]:
    """Our names of the keys that a scenario gives by another name, each with that."""
    engine_section = mapping.get("engine")
    if not isinstance(engine_section, dict):
        return {}
    return {f"engine.{name}": f"engine.{alias}" for alias, name in presets.written(engine_section).items()}


def read_from(trace: Path, mapping: dict[str, Any]) -> None:
    """Make the file `trace` the source of a scenario's workload."""
    workload = mapping.get("workload")
    kept = dict(workload) if isinstance(workload, dict) else {}
    given = kept.get("trace")
    kinds = [key for key in given if key not in TRACE_OPTIONS] if isinstance(given, dict) else []
    kind = kinds[0] if kinds else AUTO
    for source in SOURCES:
        kept.pop(source, None)
    mapping["workload"] = {"trace": {kind: str(trace.absolute())}, **kept}
