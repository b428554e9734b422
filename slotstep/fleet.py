"""The replicas of a scenario and the router before them. Knows no router by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import field_validator

from slotstep import document
from slotstep.fields import Count, Section


class Cluster(Section):
    """So many equal replicas of the engine, each with its own queue, behind one router."""

    replicas: Count = 1
    router: str | dict[str, Any] = "round_robin"

    @field_validator("router", mode="before")
    @classmethod
    def named(cls, value: object) -> object:
        """A name, or a name with its options."""
        options = next(iter(value.values())) if isinstance(value, Mapping) and len(value) == 1 else None
        if isinstance(value, str) or isinstance(options, Mapping):
            return value
        raise ValueError(
            f"found {document.brief(value)}; expected the name of a router, or its name with its options"
        )

    @property
    def router_choice(self) -> tuple[str, Mapping[str, object]]:
        """The name of the router and its options."""
        if isinstance(self.router, str):
            return self.router, {}
        return next(iter(self.router.items()))
