"""The pytest plugin: the fixture `slotstep_run`. Loaded by every pytest, so it imports nothing until it is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from slotstep.runs.result import Result


@pytest.fixture
def slotstep_run(pytestconfig: pytest.Config) -> Callable[..., Result]:
    """Simulate: `slotstep_run("chat.yaml", "engine.slots=32", policy="fair")`, or a mapping instead of a file.

    A relative file name starts at pytest's root directory.
    """

    def run(scenario: str | Path | Mapping[str, Any], *settings: str, policy: str | None = None) -> Result:
        import slotstep

        if isinstance(scenario, Mapping):
            if settings:
                raise ValueError("settings beside a mapping; expected them in it")
            return slotstep.run(slotstep.parse(scenario), policy)
        return slotstep.run(slotstep.load(pytestconfig.rootpath / scenario, settings), policy)

    return run
