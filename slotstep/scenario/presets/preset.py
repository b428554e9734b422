"""What a preset is: an engine's own option names for our keys, its defaults, and the version that is modelled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from slotstep.scenario.apart import Apart
from slotstep.scenario.fields import whole


class Settings(Protocol):
    """What a preset checks of an engine section."""

    @property
    def slots(self) -> int: ...

    @property
    def token_budget(self) -> int: ...

    @property
    def chunked(self) -> bool: ...

    @property
    def max_model_len(self) -> int | None: ...

    @property
    def async_scheduling(self) -> bool: ...

    @property
    def admission(self) -> object: ...

    @property
    def prefix_cache(self) -> bool: ...

    @property
    def apart(self) -> Apart | None: ...

    @property
    def device(self) -> str | None: ...

    @property
    def device_memory(self) -> str | None: ...


@dataclass(frozen=True)
class Preset:
    """One engine.

    name      in a scenario
    version   of the engine whose decisions are modelled
    aliases   the engine's names of our keys of the engine section; a key of its section `apart` is "apart.KEY"
    ordering  the engine's names of what becomes the policy of the scenario, the first of them its name
    read      our values of options given under the engine's names, where they are not the same
    defaults  the engine's defaults beside what is given under our keys
    policy    our policy for the engine's options
    check     raises ValueError for settings with which the engine does not start
    """

    name: str
    version: str
    aliases: Mapping[str, str]
    ordering: tuple[str, ...]
    read: Callable[[Mapping[str, Any]], dict[str, Any]]
    defaults: Callable[[Mapping[str, Any]], dict[str, Any]]
    policy: Callable[[object, Mapping[str, Any]], object]
    check: Callable[[Settings], None]


def count(value: object) -> int | None:
    """A whole number from 1; None for anything else, which the section's validator reports."""
    try:
        return whole(1)(value)
    except ValueError:
        return None
