"""The policy of a scenario: a name and its options, both checked by `policies` when the scenario is loaded."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_serializer, model_validator

from slotstep.scenario import document
from slotstep.scenario.fields import Label, Section


class PolicyChoice(Section):
    """A policy's name and its options as written; in YAML `fcfs` or `{sjf: {error: 0.5}}`."""

    name: Label
    options: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def short_form(cls, value: object) -> object:
        """From a name, or one name with its options."""
        if isinstance(value, dict) and len(value) == 1:
            ((name, options),) = value.items()
            if options is None or isinstance(options, dict):
                return {"name": name, "options": options or {}}
        elif isinstance(value, str) and value:
            return {"name": value}
        raise ValueError(f"found {document.brief(value)}; expected a policy, or one with its options")

    @model_serializer
    def short(self) -> str | dict[str, Any]:
        """To the form that `short_form` reads."""
        return {self.name: self.options} if self.options else self.name
