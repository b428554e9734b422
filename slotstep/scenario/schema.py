"""The schema of a scenario: requests, clients, cluster, engine, cost, policy and objectives, each checked.

Runs nothing: `slotstep.runs.loading` reads a scenario and `slotstep.runs.simulation` runs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any

from pydantic import BeforeValidator, PrivateAttr, ValidationInfo, model_validator

from slotstep.scenario import presets
from slotstep.scenario.clients import Clients, Limits
from slotstep.scenario.cluster import Cluster, spread
from slotstep.scenario.cost import Cost
from slotstep.scenario.engine import Engine
from slotstep.scenario.fields import Label, Section, Seed, Truth, sequence
from slotstep.scenario.objectives import Measure, Objectives
from slotstep.scenario.policy import PolicyChoice
from slotstep.scenario.workload import Workload
from traces.errors import BadInput


class Scenario(Section):
    """One scenario, checked. Immutable; durations are in nanoseconds.

    `slotstep.load` reads one from a file and `slotstep.parse` from a mapping; `slotstep.run` simulates it.
    """

    name: Label
    workload: Workload
    clients: Clients | None = None
    limits: Limits = Limits()
    cluster: Cluster = Cluster()
    engine: Engine = Engine()
    cost: Cost
    policy: PolicyChoice = PolicyChoice.model_validate("fcfs")
    objectives: Objectives = Objectives()
    measure: Measure | None = None
    metrics: Annotated[tuple[Label, ...], BeforeValidator(sequence)] | None = None
    seed: Seed = 0
    allow_large: Truth = False

    _source: str = PrivateAttr("scenario")
    _written: Scenario | None = PrivateAttr(None)
    _given: Mapping[str, Any] = PrivateAttr(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def one_policy(cls, value: object) -> object:
        """Moves a policy given among a preset's options to the scenario; gives groups of replicas whole engines."""
        return spread(presets.move_policy(value)) if isinstance(value, dict) else value

    @model_validator(mode="after")
    def from_source(self, info: ValidationInfo) -> Scenario:
        """Keeps the source named in the validation context, for error messages."""
        self._source = (info.context or {}).get("source", "scenario")
        return self

    @property
    def written(self) -> Scenario:
        """The scenario as it was given, without what follows from its profiles."""
        return self if self._written is None else self._written

    @property
    def given(self) -> Mapping[str, Any]:
        """The mapping that the scenario was parsed from, without any default."""
        return self._given

    def keep_given(self, mapping: Mapping[str, Any]) -> None:
        """Keep the mapping that this scenario was parsed from."""
        self._given = mapping

    def completed(self, **sections: Any) -> Scenario:
        """This scenario with other sections; its `written` is the scenario as it is now."""
        made = self.model_copy(update=sections)
        made._written = self
        return made

    @property
    def holds_back(self) -> bool:
        """Whether a request may be sent later than its client wanted: because of a window or a delay."""
        return self.clients is not None and bool(self.clients.window or self.clients.delay)

    @contextmanager
    def blamed(self, key: str) -> Iterator[None]:
        """Raise a ValueError of the block as a BadInput that begins with the scenario's source and `key`.

        `key` is what the message lacks in front, such as "policy: ".
        """
        try:
            yield
        except ValueError as error:
            raise BadInput(f"{self._source}: {key}{error}") from error
